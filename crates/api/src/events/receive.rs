//! Receives events of the store and publishes them on the [`EventBus`]. All messages that have
//! arrived are read before any is published. At most [`MAX_WAITING`] wait: a process that cannot
//! keep up discards some and tells its listeners, rather than fill its memory.

use std::collections::VecDeque;

use futures_util::FutureExt as _;
use ringback_core::contract::StreamItem;
use ringback_service::random;
use ringback_store::Store;
use tokio::task::coop::unconstrained;
use tokio::task::yield_now;

use super::bus::EventBus;

/// The most messages that wait, of at most 500 events each.
const MAX_WAITING: usize = 128;

/// Publishes what the store sends. Never returns.
pub(super) async fn receive(bus: &EventBus, store: &Store) {
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
        // Without a subscription `next` would begin to subscribe, which must not be cancelled.
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
