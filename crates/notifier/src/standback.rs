//! Standing back: every wake-up reaches every notifier, and one of them gets the jobs. A
//! notifier that came too late several times in a row lets the faster ones go first: it
//! waits a little before it asks, and begins the wait anew when the shard speaks up again.
//! For a queue does so only when it was empty, so somebody has taken what was there. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use ringback_core::contract::Shard;
use tokio::time::Instant;

/// So many asks in vain mean nothing: one notifier alone has some too, when several lanes
/// speak up and one ask empties them all.
const FREE: u32 = 4;
/// The first wait is half of this or more. It doubles with every further ask in vain,
const FIRST: Duration = Duration::from_millis(1);
/// up to this.
const LONGEST: Duration = Duration::from_millis(80);
/// Since the wake-up that began it no wait is longer, however often it began anew: one lane
/// may speak up while the jobs of another wait for a notifier that has room.
const PATIENCE: Duration = Duration::from_millis(300);

/// When to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Now,
    Later,
}

/// The waits of one notifier.
pub(crate) struct StandBack {
    waits: BTreeMap<Shard, Wait>,
    rng: StdRng,
}

struct Wait {
    until: Instant,
    latest: Instant,
}

impl StandBack {
    pub(crate) fn new(rng: StdRng) -> Self {
        Self { waits: BTreeMap::new(), rng }
    }

    /// A shard has spoken up; `in_vain` reserves in a row found nothing there.
    pub(crate) fn wake(&mut self, shard: Shard, in_vain: u32, now: Instant) -> Turn {
        let Some(more) = in_vain.checked_sub(FREE) else {
            self.waits.remove(&shard);
            return Turn::Now;
        };
        let step = FIRST.saturating_mul(1 << more.min(16)).min(LONGEST);
        let wait = step.mul_f64(self.rng.random_range(0.5..=1.0));
        let latest = self.waits.get(&shard).map_or(now + PATIENCE, |known| known.latest);
        self.waits.insert(shard, Wait { until: (now + wait).min(latest), latest });
        Turn::Later
    }

    /// When the first wait is over.
    pub(crate) fn first(&self) -> Option<Instant> {
        self.waits.values().map(|wait| wait.until).min()
    }

    /// The shards whose wait is over.
    pub(crate) fn due(&mut self, now: Instant) -> Vec<Shard> {
        let mut due = Vec::new();
        self.waits.retain(|shard, wait| {
            let waits = wait.until > now;
            if !waits {
                due.push(*shard);
            }
            waits
        });
        due
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;
    use ringback_store::{Store, settings};

    use super::*;

    fn shards() -> (StandBack, Vec<Shard>) {
        let store = Store::open(settings::defaults(Duration::from_secs(1))).unwrap();
        (StandBack::new(StdRng::seed_from_u64(1)), store.shards().collect())
    }

    #[tokio::test]
    async fn whoever_is_fast_enough_asks_at_once() {
        let (mut back, shards) = shards();
        for in_vain in 0..FREE {
            assert_eq!(back.wake(shards[0], in_vain, Instant::now()), Turn::Now);
        }
        assert_eq!(back.first(), None);
    }

    #[tokio::test]
    async fn waits_grow_with_every_ask_in_vain_and_are_bounded() {
        let (mut back, shards) = shards();
        for (more, step) in [1, 2, 4, 8, 16, 32, 64, 80, 80].into_iter().enumerate() {
            let now = Instant::now();
            assert_eq!(back.wake(shards[0], FREE + more as u32, now), Turn::Later);
            let wait = back.first().unwrap() - now;
            let step = Duration::from_millis(step);
            assert!(wait >= step / 2 && wait <= step, "{wait:?} for {step:?}");
            assert_eq!(back.due(now + step), [shards[0]]);
        }
    }

    #[tokio::test]
    async fn a_wait_begins_anew_with_each_wake_up_but_not_for_ever() {
        let (mut back, shards) = shards();
        let start = Instant::now();
        let mut now = start;
        // Again and again before the shortest wait is over.
        while now < start + PATIENCE {
            assert_eq!(back.due(now), [], "after {:?}", now - start);
            back.wake(shards[0], 100, now);
            now += Duration::from_millis(20);
        }
        assert_eq!(back.first(), Some(start + PATIENCE));
    }

    #[tokio::test]
    async fn shards_wait_by_themselves() {
        let (mut back, shards) = shards();
        let now = Instant::now();
        back.wake(shards[0], 100, now);
        back.wake(shards[1], FREE, now);
        assert_eq!(back.due(now + Duration::from_millis(2)), [shards[1]]);
        assert_eq!(back.wake(shards[0], 0, now), Turn::Now);
        assert_eq!(back.first(), None, "a success ends the wait");
    }
}
