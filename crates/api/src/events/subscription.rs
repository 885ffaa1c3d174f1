//! Keeps the subscription of the process while somebody listens: receives events, and asks every
//! shard again and again to publish them.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use ringback_core::clock::Timestamp;
use ringback_core::contract::StoreError;
use ringback_service::Shutdown;
use ringback_store::Store;
use tokio::time::{Instant, timeout};

use super::bus::{EventBus, Watch};
use super::receive::receive;
use crate::error;

/// How long a shard publishes events after it was asked to.
const WATCH_FOR: Duration = Duration::from_secs(30);
/// How often the shards are asked again.
const WATCH_EVERY: Duration = Duration::from_secs(10);
/// How soon the shards are asked again after a failure.
const RETRY_AFTER: Duration = Duration::from_millis(250);

/// Runs until the shutdown, and then ends every stream.
pub(super) async fn run(bus: Arc<EventBus>, store: Store, shutdown: Shutdown) {
    let work = async {
        loop {
            bus.has_listeners().await;
            tokio::select! {
                () = receive(&bus, &store) => {}
                () = watch(&bus, &store) => {}
                () = bus.has_no_listeners() => {}
            }
        }
    };
    tokio::select! {
        () = work => {}
        () = shutdown.stopping() => {}
    }
    bus.end();
}

/// Watches every shard while there is a subscription, and at once when a new one begins.
async fn watch(bus: &EventBus, store: &Store) {
    let mut last = None;
    loop {
        let subscription = bus.subscription_after(None).await;
        let begun = Instant::now();
        let pause = match watch_all(store).await {
            Ok(since) => {
                let now = Some((subscription, since));
                let watch = if last == now { Watch::Unbroken } else { Watch::New };
                last = now;
                bus.watched(subscription, watch);
                WATCH_EVERY.saturating_sub(begun.elapsed())
            }
            Err(error) => {
                error::log(&error);
                bus.unwatched();
                RETRY_AFTER
            }
        };
        timeout(pause, bus.subscription_after(Some(subscription))).await.ok();
    }
}

/// Asks every shard to publish events. Returns since when each does so without a pause.
async fn watch_all(store: &Store) -> Result<Vec<Timestamp>, StoreError> {
    try_join_all(store.shards().map(|shard| store.watch(shard, WATCH_FOR))).await
}
