//! The carrier: makes due jobs ready, recovers expired leases, evicts old dead jobs, publishes notices, makes
//! schedules fire and runs bulk operations. Any number of carriers share the shards. A carrier delivers nothing.
//!
//! `shards` decides which shards this carrier holds, and runs a `shard_worker` for each. `pace` chooses the worker's
//! next pass, and `pass_backoff` delays kinds of passes that fail. Beside the worker run an `outbox_relay`, which
//! publishes notices, and `schedules`. `bulk_operations` and `gauges` serve all shards. `deadline_signal` turns the
//! wake-ups of the store into signals for all of them. `epoch_log` logs claims and what is done under them.

mod bulk_operations;
mod config;
mod deadline_signal;
mod epoch_log;
mod gauges;
mod metrics;
mod outbox_relay;
mod pace;
mod pass_backoff;
mod schedules;
mod shard_worker;
mod shards;

use std::sync::Arc;

use ringback_core::store_types::StoreError;
use ringback_service::dependency::Dependency;
use ringback_service::{Context, Tasks, random};
use ringback_store::{Retries, SharedConfig, Store};
use tokio::sync::{Semaphore, watch};

use crate::bulk_operations::Bulks;
pub use crate::config::Config;
use crate::deadline_signal::DeadlineSignals;
use crate::gauges::{HeldShards, gauges};
pub use crate::metrics::METRICS;
use crate::metrics::{Metrics, show_eviction};
use crate::shards::Shards;

/// The task, and the readiness check, of the topic policies.
const POLICIES: &str = "carrier's policies";

/// Runs a carrier until the shutdown.
///
/// # Errors
/// When the store cannot be opened or used, or a task failed.
pub async fn run(config: Config, context: Context) -> anyhow::Result<()> {
    let store = Store::open(config.store.clone())?;
    let (clock, of) = (store.clock(Arc::clone(&context.clock)), store.clone());
    let context = context.on_store(clock, move || of.clock_ahead_seconds());
    let mut tasks = Tasks::new();
    start(&config, &store, &context, &mut tasks);
    let (prepare, check) = (Store::prepared, Store::answers);
    let (is_transient, is_refusal) = (StoreError::is_transient, StoreError::is_refusal);
    let dependency = Dependency { name: "store", subject: store, prepare, check, is_transient, is_refusal };
    dependency.run(tasks, context).await
}

/// Starts the tasks of a carrier, and registers its metrics. The caller prepares the store and checks that it answers.
pub fn start(config: &Config, store: &Store, context: &Context, tasks: &mut Tasks) {
    let signals = Arc::new(DeadlineSignals::new(store.shards()));
    let wakes = store.wakes(random::generator());
    tasks.spawn("carrier's wakes", Arc::clone(&signals).listen(wakes, context.shutdown.clone()));
    let metrics = Metrics::new(&context.meter);
    show_eviction(&context.meter, store.clone());
    let policies = SharedConfig::default();
    let (shared, of) = (policies.clone(), store.clone());
    context.spawn_reader(POLICIES, tasks, |known| shared.keep(of, random::generator(), known));
    let bulks = Bulks {
        store: store.clone(),
        signals: Arc::clone(&signals),
        metrics: metrics.clone(),
        shutdown: context.shutdown.clone(),
        ttl: config.lock_ttl,
        scans: Arc::new(Semaphore::new(1)),
    };
    tasks.spawn("bulks", bulks.run());
    let held = watch::Sender::new(HeldShards::new());
    let (reader, view) = gauges(store.clone(), policies.clone(), held.subscribe());
    tasks.spawn("gauges", reader.run(context.shutdown.clone()));
    context.scrapes.add(move || view.clone().scrape());
    let retries = Retries { policies, installation: config.retry.clone() };
    let shards = Shards::new(config, store.clone(), signals, retries, metrics, held, context.clone());
    tasks.spawn("shards", shards.run());
}
