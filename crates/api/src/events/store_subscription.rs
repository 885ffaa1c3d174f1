//! The one subscription of the process to the events of the store, kept while somebody listens: asks every shard every
//! 10 s to publish events, receives them, and publishes them on the [`EventBus`]. At most [`MAX_WAITING`] messages
//! wait: a process that cannot keep up discards some and sends its listeners `missed`, rather than fill its memory.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::try_join_all;
use ringback_core::clock::Timestamp;
use ringback_core::store_types::{StoreError, StreamItem};
use ringback_service::{Shutdown, random};
use ringback_store::Store;
use tokio::task::coop::unconstrained;
use tokio::task::yield_now;
use tokio::time::{Instant, timeout};

use super::bus::{EventBus, Watch};
use crate::error;

/// How long a shard publishes events after it was asked to.
const WATCH_FOR: Duration = Duration::from_secs(30);
/// How often the shards are asked again.
const WATCH_EVERY: Duration = Duration::from_secs(10);
/// How soon the shards are asked again after a failure.
const RETRY_AFTER: Duration = Duration::from_millis(250);
/// The most messages that wait, of at most 500 events each.
const MAX_WAITING: usize = 128;

/// Runs until the shutdown, and then ends every stream.
pub(super) async fn run(bus: Arc<EventBus>, store: Store, shutdown: Shutdown) {
    let work = async {
        loop {
            bus.has_listeners().await;
            tokio::select! {
                biased;
                () = receive(&bus, &store) => {}
                () = watch(&bus, &store) => {}
                () = bus.has_no_listeners() => {}
            }
        }
    };
    tokio::select! {
        biased;
        () = work => {}
        () = shutdown.stopping() => {}
    }
    bus.end();
}

/// While there is a subscription, asks every shard to publish events: at once when it begins, then every 10 s, and
/// 250 ms after a failure. Tells the bus whether all shards do. Never returns.
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

/// Asks every shard to publish events for [`WATCH_FOR`]. Returns since when each shard does so without a pause.
async fn watch_all(store: &Store) -> Result<Vec<Timestamp>, StoreError> {
    try_join_all(store.shards().map(|shard| store.watch(shard, WATCH_FOR))).await
}

/// Publishes the events that the store sends. All messages that have arrived are read before any is
/// published. Never returns.
async fn receive(bus: &EventBus, store: &Store) {
    let (mut events, mut waiting) = (store.events(random::generator()), Waiting::default());
    loop {
        let item = match waiting.next() {
            Some(item) => item,
            None => events.next().await,
        };
        let is_subscribed = matches!(item, StreamItem::Events(_) | StreamItem::Missed);
        match item {
            StreamItem::Gap => bus.subscribed(),
            StreamItem::Missed => bus.missed(),
            StreamItem::Lost => bus.unsubscribed(),
            StreamItem::Events(events) => bus.publish(&events),
        }
        // Without a subscription no messages can have arrived.
        if is_subscribed {
            for _ in 0..=MAX_WAITING {
                // Tokio's budget would stop this loop early, and the rest would pile up.
                let Some(item) = unconstrained(events.next()).now_or_never() else { break };
                waiting.add(item);
            }
            yield_now().await;
        }
    }
}

/// Messages that have been received and not yet published.
#[derive(Default)]
struct Waiting(VecDeque<StreamItem>);

impl Waiting {
    /// Adds a message. If too many wait already, they are replaced by [`StreamItem::Missed`].
    fn add(&mut self, item: StreamItem) {
        if self.0.len() >= MAX_WAITING {
            tracing::warn!("events arrive faster than they can be published; some are discarded");
            self.0.clear();
            self.0.push_back(StreamItem::Missed);
        }
        self.0.push_back(item);
    }

    fn next(&mut self) -> Option<StreamItem> {
        self.0.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overflow_is_missed_and_the_end_of_a_subscription_is_kept() {
        let mut waiting = Waiting::default();
        (0..MAX_WAITING).for_each(|_| waiting.add(StreamItem::Events(Vec::new())));
        waiting.add(StreamItem::Lost);
        assert_eq!(
            [waiting.next(), waiting.next(), waiting.next()],
            [Some(StreamItem::Missed), Some(StreamItem::Lost), None]
        );
    }
}
