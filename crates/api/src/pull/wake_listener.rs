//! Wakes waiters when the store announces that a topic has jobs again. An announcement can be lost, so the shards are
//! also read every 3 s while somebody waits, and after each new subscription.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use ringback_core::store_types::{Shard, StoreError, Wake};
use ringback_service::{Shutdown, random};
use ringback_store::Store;
use tokio::time::{Instant, sleep_until};

use super::waiters::Waiters;

/// How often the shards are read while somebody waits.
const READ_EVERY: Duration = Duration::from_secs(3);
/// How long the subscription is kept when nobody waits.
const KEEP: Duration = Duration::from_secs(60);
/// How many lanes are read at once.
const PAGE: usize = 1000;
/// The most pages per shard.
const MAX_PAGES: usize = 100;

/// Wakes the waiters until the shutdown.
pub(super) async fn listen(store: Store, waiters: Arc<Waiters>, shutdown: Shutdown) {
    tokio::select! {
        biased;
        () = run(&store, &waiters) => {}
        () = shutdown.stopping() => {}
    }
}

async fn run(store: &Store, waiters: &Waiters) {
    loop {
        waiters.not_empty().await;
        let mut wakes = store.wakes(random::generator());
        let (mut read_at, mut waited) = (Instant::now() + READ_EVERY, Instant::now());
        let mut reads = FuturesUnordered::new();
        while waited.elapsed() < KEEP {
            tokio::select! {
                biased;
                Some(()) = reads.next() => {}
                () = sleep_until(read_at), if reads.is_empty() => {
                    read_at = Instant::now() + READ_EVERY;
                    if !waiters.is_empty() {
                        waited = Instant::now();
                        reads.extend(store.shards().map(|shard| wake_all(store, waiters, shard)));
                    }
                }
                wake = wakes.next() => match wake {
                    Wake::Pull(shard, topic) => waiters.wake(&topic, shard),
                    Wake::Subscribed => read_at = Instant::now(),
                    Wake::Ready(_) | Wake::Due(..) | Wake::Awaited { .. } | Wake::CancelRequested(_) | Wake::Carriers | Wake::Bulk => {}
                },
            }
        }
    }
}

/// Reads the topics of a shard that have pull jobs, and wakes a waiter of each. An error is only a debug line, since
/// the readiness check reports it; the next waiters that come ask all shards then.
async fn wake_all(store: &Store, waiters: &Waiters, shard: Shard) {
    if let Err(error) = try_wake_all(store, waiters, shard).await {
        // Who comes while the store is away is to learn of it.
        waiters.look_again();
        tracing::debug!(%error, shard = shard.number(), "cannot read which topics have pull jobs");
    }
}

async fn try_wake_all(store: &Store, waiters: &Waiters, shard: Shard) -> Result<(), StoreError> {
    for page in 0..MAX_PAGES {
        let (topics, looked_at) = store.pull_topics(shard, page * PAGE, PAGE).await?;
        topics.iter().for_each(|topic| waiters.wake(topic, shard));
        if looked_at < PAGE {
            break;
        }
    }
    Ok(())
}
