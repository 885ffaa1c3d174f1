//! Hand-over: a notifier reserves ready jobs, POSTs each to its callback URL, and settles
//! what came of it. Any number of notifiers share the work; none knows a due time.
//!
//! In the order of one job: `wanted` (which shards to ask) and `standback` (when others
//! are faster), `dispatcher` (permit, reserve, spawn, settle), `lanes` (who may have how much),
//! `blocked` (lanes that wait for room), `call` (one call to the store), `delivery` (one
//! attempt), `request` (its headers), `client` (the one HTTP client), `verdict` (what an
//! answer means), `lack` (what this machine cannot do), `settler` (words that wait to be told).

mod blocked;
mod call;
mod client;
mod config;
mod delivery;
mod dispatcher;
mod lack;
mod lanes;
mod metrics;
mod request;
mod settler;
mod standback;
mod verdict;
mod wanted;

use std::error::Error;
use std::sync::Arc;

use ringback_core::contract::StoreError;
use ringback_service::dependency::Dependency;
use ringback_service::{Context, Tasks, random};
use ringback_store::{PolicyBook, Store};

pub use crate::config::Config;
use crate::delivery::Courier;
use crate::dispatcher::Dispatcher;
use crate::lanes::Lanes;
use crate::metrics::Metrics;
use crate::wanted::Wanted;

/// The task that knows the policies of the topics, and whether it does.
const POLICIES: &str = "notifier's policies";

/// Runs a notifier until the shutdown.
///
/// # Errors
/// When the store is unfit, the HTTP client cannot be made, or a task died.
pub async fn run(config: Config, context: Context) -> anyhow::Result<()> {
    let store = Store::open(config.store.clone())?;
    let mut tasks = Tasks::new();
    start(config, &store, &context, &mut tasks)?;
    let dependency = Dependency {
        name: "store",
        subject: store,
        prepare: Store::prepared,
        check: Store::answers,
        is_transient: StoreError::is_transient,
    };
    tasks.spawn("store", dependency.watch(context.health, context.shutdown.clone()));
    tasks.join_all(&context.shutdown).await
}

/// Starts the role on a store that somebody else watches.
///
/// # Errors
/// When the HTTP client cannot be made.
pub fn start(config: Config, store: &Store, context: &Context, tasks: &mut Tasks) -> anyhow::Result<()> {
    let Context { shutdown, meter, .. } = context;
    let metrics = Metrics::new(meter);
    let policies = PolicyBook::default();
    let (book, of) = (policies.clone(), store.clone());
    context.spawn_reader(POLICIES, tasks, |known| book.keep(of, random::generator(), known));
    let wanted = Arc::new(Wanted::new(store.shards()));
    let wakes = store.wakes(random::generator());
    tasks.spawn("notifier's wakes", Arc::clone(&wanted).listen(wakes, shutdown.clone()));
    let courier = Courier {
        client: client::build(config.lane_concurrency)?,
        store: store.clone(),
        policies,
        retry: config.retry,
        margin: config.lease_margin,
        patience: config.store.call_timeout,
        metrics: metrics.clone(),
        shutdown: shutdown.clone(),
        name: ringback_service::name::of_process().into(),
    };
    let lanes = Lanes::new(config.concurrency, config.lane_concurrency);
    let margin = config.lease_margin;
    let store = store.clone();
    let dispatcher = Dispatcher::new(store, wanted, lanes, courier, margin, metrics, shutdown.clone());
    tasks.spawn("dispatcher", dispatcher.run());
    Ok(())
}

/// An error with its causes, for a log line.
fn cause(error: &StoreError) -> &(dyn Error + 'static) {
    error
}
