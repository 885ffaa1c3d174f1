//! Hears of topics that are no longer empty. A wake-up can be lost: so while somebody waits the
//! shards are looked at every few seconds, and after each new subscription, whoever waits.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use ringback_core::contract::{Shard, StoreError, Wake};
use ringback_service::{Shutdown, random};
use ringback_store::Store;
use tokio::time::{Instant, sleep_until};

use super::waiters::Waiters;

/// How often the shards are looked at while somebody waits.
const LOOK: Duration = Duration::from_secs(3);
/// How long the subscription is kept though nobody waits.
const KEEP: Duration = Duration::from_secs(60);
/// So many lanes are read at once, and so often per shard at most.
const PAGE: usize = 1000;
const PAGES: usize = 100;

/// Wakes the waiters until the shutdown.
pub(super) async fn listen(store: Store, waiters: Arc<Waiters>, shutdown: Shutdown) {
    tokio::select! {
        () = hear(&store, &waiters) => {}
        () = shutdown.stopping() => {}
    }
}

async fn hear(store: &Store, waiters: &Waiters) {
    loop {
        waiters.some().await;
        let mut wakes = store.wakes(random::generator());
        let (mut look_at, mut waited) = (Instant::now() + LOOK, Instant::now());
        let mut looks = FuturesUnordered::new();
        while waited.elapsed() < KEEP {
            tokio::select! {
                wake = wakes.next() => match wake {
                    Wake::Pull(shard, lane) => waiters.wake(lane, shard),
                    Wake::Subscribed => look_at = Instant::now(),
                    Wake::Ready(_) | Wake::Due(..) | Wake::Carriers | Wake::Redrive => {}
                },
                Some(()) = looks.next() => {}
                () = sleep_until(look_at), if looks.is_empty() => {
                    look_at = Instant::now() + LOOK;
                    if !waiters.is_empty() {
                        waited = Instant::now();
                        looks.extend(store.shards().map(|shard| look(store, waiters, shard)));
                    }
                }
            }
        }
    }
}

/// One look at a shard, whatever the number of waiters. A store that is away is told of by the
/// readiness check.
async fn look(store: &Store, waiters: &Waiters, shard: Shard) {
    if let Err(error) = look_at(store, waiters, shard).await {
        tracing::debug!(%error, shard = shard.number(), "the topics that are not empty cannot be read");
    }
}

async fn look_at(store: &Store, waiters: &Waiters, shard: Shard) -> Result<(), StoreError> {
    for page in 0..PAGES {
        let lanes = store.pull_lanes(shard, page * PAGE, PAGE).await?;
        let is_last = lanes.len() < PAGE;
        lanes.into_iter().for_each(|lane| waiters.wake(lane, shard));
        if is_last {
            break;
        }
    }
    Ok(())
}
