//! Hand-over: a notifier reserves ready jobs, POSTs each to its callback URL, and settles
//! what came of it. Any number of notifiers share the work; none knows a due time.
//!
//! In the order of one job: `dispatcher` (permit, reserve, spawn), `lanes` (who may
//! have how much), `delivery` (one attempt), `request` (its headers), `client` (the
//! one HTTP client), `verdict` (what an answer means), `settler` (the word to the
//! store).

mod client;
mod config;
mod delivery;
mod dispatcher;
mod lanes;
mod metrics;
mod request;
mod settler;
mod verdict;
mod wanted;

use std::error::Error;
use std::sync::Arc;

use ringback_core::store::{Store, StoreError};
use ringback_service::dependency::Dependency;
use ringback_service::{Context, Tasks};

pub use crate::config::Config;
use crate::delivery::Courier;
use crate::dispatcher::Dispatcher;
use crate::lanes::Lanes;
use crate::metrics::Metrics;
use crate::settler::Settler;
use crate::wanted::Wanted;

/// Runs a notifier until the shutdown.
///
/// # Errors
/// When the store is unfit, the HTTP client cannot be made, or a task died.
pub async fn run(config: Config, context: Context) -> anyhow::Result<()> {
    let store = Store::open(config.store)?;
    let metrics = Metrics::new(&context.meter);
    let mut tasks = Tasks::new();
    let dependency = Dependency {
        name: "store",
        prepare: {
            let store = store.clone();
            move || store.clone().prepared()
        },
        check: {
            let store = store.clone();
            move || store.clone().answers()
        },
        is_transient: StoreError::is_transient,
    };
    tasks.spawn("store", dependency.watch(context.health.clone(), context.shutdown.clone()));

    let wanted = Arc::new(Wanted::new(store.shards()));
    tasks.spawn("wakes", Arc::clone(&wanted).listen(store.wakes(), context.shutdown.clone()));
    let courier = Courier {
        client: client::build(config.lane_concurrency)?,
        store: store.clone(),
        settler: Settler::start(&store, &metrics, &context.shutdown),
        retry: config.retry,
        margin: config.lease_margin,
        metrics: metrics.clone(),
        shutdown: context.shutdown.clone(),
    };
    let lanes = Lanes::new(config.concurrency, config.lane_concurrency);
    let dispatcher = Dispatcher::new(
        store,
        wanted,
        lanes,
        courier,
        config.lease_margin,
        metrics,
        context.shutdown.clone(),
    );
    tasks.spawn("dispatcher", dispatcher.run());
    tasks.join_all(&context.shutdown).await
}

/// An error with its causes, for a log line.
fn cause(error: &StoreError) -> &(dyn Error + 'static) {
    error
}
