//! Time: a carrier moves due jobs to ready, brings back leases that ran out, and removes
//! dead jobs that were kept long enough. Any number of carriers share the shards.
//!
//! Whoever of them takes a revival of many dead jobs works on it.
//!
//! `shards` decides which shards are held here, `holder` works on one of them,
//! `pace` says how long it sleeps, `setbacks` what it leaves alone for a while, `bells` wake it. Beside a
//! holder a `teller` tells of the shard's deaths. `reviver` takes revivals, `revival` works on one. Nothing
//! here delivers anything.

mod bells;
mod config;
mod holder;
mod metrics;
mod pace;
mod revival;
mod reviver;
mod setbacks;
mod shards;
mod teller;

use std::error::Error;
use std::sync::Arc;

use ringback_core::contract::StoreError;
use ringback_service::dependency::Dependency;
use ringback_service::{Context, Tasks, random};
use ringback_store::{PolicyBook, Retries, Store};

use crate::bells::Bells;
pub use crate::config::Config;
use crate::metrics::Metrics;
use crate::reviver::Reviver;
use crate::shards::{Shards, Times};

/// The task that knows the policies of the topics, and whether it does.
const POLICIES: &str = "carrier's policies";

/// Runs a carrier until the shutdown.
///
/// # Errors
/// When the store is unfit, or a task died.
pub async fn run(config: Config, context: Context) -> anyhow::Result<()> {
    let store = Store::open(config.store.clone())?;
    let mut tasks = Tasks::new();
    start(&config, &store, &context, &mut tasks);
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
pub fn start(config: &Config, store: &Store, context: &Context, tasks: &mut Tasks) {
    let bells = Arc::new(Bells::new(store.shards()));
    let wakes = store.wakes(random::generator());
    tasks.spawn("carrier's wakes", Arc::clone(&bells).listen(wakes, context.shutdown.clone()));
    let metrics = Metrics::new(&context.meter);
    let policies = PolicyBook::default();
    let (book, of) = (policies.clone(), store.clone());
    context.spawn_reader(POLICIES, tasks, |known| book.keep(of, random::generator(), known));
    let times = Times { ttl: config.lock_ttl, patience: config.store.call_timeout };
    let reviver = Reviver {
        store: store.clone(),
        bells: Arc::clone(&bells),
        metrics: metrics.clone(),
        shutdown: context.shutdown.clone(),
        ttl: config.lock_ttl,
    };
    tasks.spawn("reviver", reviver.run());
    let retries = Retries { policies, default: config.retry.clone() };
    let shards = Shards::new(store.clone(), bells, times, retries, metrics, context.clone());
    tasks.spawn("shards", shards.run());
}

/// An error with its causes, for a log line.
fn cause(error: &StoreError) -> &(dyn Error + 'static) {
    error
}
