//! What the store tells, handed on. All that has come is taken before any of it is handed on, and
//! no more than so much may wait: a process that cannot keep up loses some and says so, rather
//! than fill its memory.

use std::collections::VecDeque;

use futures_util::FutureExt as _;
use ringback_core::store::Store;
use ringback_core::store::events::News;
use ringback_service::random;

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
        let is_standing = matches!(news, News::Events(_));
        match news {
            News::Gap => hub.subscribed(),
            News::Lost => hub.broken(),
            News::Events(events) => hub.tell(&events),
        }
        // An attempt to subscribe is not to be begun and dropped.
        if is_standing {
            for _ in 0..MOST {
                let Some(news) = events.next().now_or_never() else { break };
                waiting.add(news);
            }
        }
    }
}

/// What has come and is still to be handed on.
#[derive(Default)]
struct Waiting(VecDeque<News>);

impl Waiting {
    /// When there is too much, all of it becomes a gap.
    fn add(&mut self, news: News) {
        if self.0.len() >= MOST {
            tracing::warn!("events come faster than they can be handed on; some are left out");
            self.0.clear();
            self.0.push_back(News::Gap);
        }
        self.0.push_back(news);
    }

    fn next(&mut self) -> Option<News> {
        self.0.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_becomes_a_gap_and_the_end_of_a_subscription_is_kept() {
        let mut waiting = Waiting::default();
        (0..MOST).for_each(|_| waiting.add(News::Events(Vec::new())));
        waiting.add(News::Lost);
        assert_eq!(
            [waiting.next(), waiting.next(), waiting.next()],
            [Some(News::Gap), Some(News::Lost), None]
        );
    }
}
