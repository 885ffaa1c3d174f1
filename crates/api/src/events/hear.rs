//! What the store tells, handed on. All that has come is taken before any of it is handed on, and
//! no more than so much may wait: a process that cannot keep up loses some and says so, rather
//! than fill its memory.

use std::collections::VecDeque;

use futures_util::FutureExt as _;
use ringback_core::contract::StreamItem;
use ringback_service::random;
use ringback_store::Store;
use tokio::task::coop::unconstrained;
use tokio::task::yield_now;

use super::hub::Hub;

/// The most messages that wait, of at most 500 events each.
const MOST: usize = 128;

/// Hands on what the store tells, for ever.
pub(super) async fn hear(hub: &Hub, store: &Store) {
    let (mut events, mut waiting) = (store.events(random::generator()), Waiting::default());
    loop {
        let news = match waiting.next() {
            Some(news) => news,
            None => events.next().await,
        };
        let is_standing = matches!(news, StreamItem::Events(_) | StreamItem::Missed);
        match news {
            StreamItem::Gap => hub.subscribed(),
            StreamItem::Missed => hub.missed(),
            StreamItem::Lost => hub.broken(),
            StreamItem::Events(events) => hub.tell(&events),
        }
        // An attempt to subscribe is not to be begun and dropped.
        if is_standing {
            for _ in 0..=MOST {
                // Tokio would give so many and no more in one turn of the task, and let the rest pile up.
                let Some(news) = unconstrained(events.next()).now_or_never() else { break };
                waiting.add(news);
            }
            yield_now().await;
        }
    }
}

/// What has come and is still to be handed on.
#[derive(Default)]
struct Waiting(VecDeque<StreamItem>);

impl Waiting {
    /// When there is too much, all of it is missed.
    fn add(&mut self, news: StreamItem) {
        if self.0.len() >= MOST {
            tracing::warn!("events come faster than they can be handed on; some are left out");
            self.0.clear();
            self.0.push_back(StreamItem::Missed);
        }
        self.0.push_back(news);
    }

    fn next(&mut self) -> Option<StreamItem> {
        self.0.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_is_missed_and_the_end_of_a_subscription_is_kept() {
        let mut waiting = Waiting::default();
        (0..MOST).for_each(|_| waiting.add(StreamItem::Events(Vec::new())));
        waiting.add(StreamItem::Lost);
        assert_eq!(
            [waiting.next(), waiting.next(), waiting.next()],
            [Some(StreamItem::Missed), Some(StreamItem::Lost), None]
        );
    }
}
