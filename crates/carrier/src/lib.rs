//! Time: a carrier moves due jobs to ready, brings back leases that ran out, and removes
//! dead jobs that were kept long enough. Any number of carriers share the shards.
//!
//! `shards` decides which shards are held here, `holder` works on one of them,
//! `pace` says how long it sleeps, `bells` wake it. Nothing here delivers anything.

mod bells;
mod config;
mod holder;
mod metrics;
mod pace;
mod shards;

use std::error::Error;
use std::sync::Arc;

use ringback_core::store::{Store, StoreError};
use ringback_service::dependency::Dependency;
use ringback_service::{Context, Tasks};

use crate::bells::Bells;
pub use crate::config::Config;
use crate::metrics::Metrics;
use crate::shards::Shards;

/// Runs a carrier until the shutdown.
///
/// # Errors
/// When the store is unfit, or a task died.
pub async fn run(config: Config, context: Context) -> anyhow::Result<()> {
    let store = Store::open(config.store)?;
    let bells = Arc::new(Bells::new(store.shards()));
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
    tasks.spawn("wakes", Arc::clone(&bells).listen(store.wakes(), context.shutdown.clone()));
    let metrics = Metrics::new(&context.meter);
    let shards = Shards::new(store, bells, config.lock_ttl, metrics, context.clone());
    tasks.spawn("shards", shards.run());
    tasks.join_all(&context.shutdown).await
}

/// An error with its causes, for a log line.
fn cause(error: &StoreError) -> &(dyn Error + 'static) {
    error
}
