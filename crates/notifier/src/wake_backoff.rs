//! `WakeBackoff`: delays the reserves of a shard whose wake-ups have brought no job. Pure.
//!
//! Every wake-up reaches every notifier, but only one of them gets the jobs. A notifier that was too
//! late several times in a row waits before it reserves, so that faster ones go first. A further
//! wake-up of the shard restarts the wait: a shard signals only when its queue was empty, so another
//! notifier has taken the jobs.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use ringback_core::store_types::Shard;
use tokio::time::Instant;

/// Empty reserves in a row that cause no wait. A notifier without competitors has some too: several
/// lanes may signal, and one reserve empties them all.
const FREE: u32 = 4;
/// The first wait, before jitter. Each further empty reserve doubles the wait.
const FIRST: Duration = Duration::from_millis(1);
/// The longest wait, before jitter.
const LONGEST: Duration = Duration::from_millis(80);
/// The longest time from the first wake-up to the reserve, however often the wait restarts. One lane
/// may signal while the jobs of another wait for a notifier with free permits.
const MAX_DELAY: Duration = Duration::from_millis(300);

/// When to reserve after a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Now,
    Later,
}

/// The shards whose wake-ups wait.
pub(crate) struct WakeBackoff {
    waits: BTreeMap<Shard, Wait>,
    rng: StdRng,
}

struct Wait {
    until: Instant,
    latest: Instant,
}

impl WakeBackoff {
    pub(crate) fn new(rng: StdRng) -> Self {
        Self { waits: BTreeMap::new(), rng }
    }

    /// Handles a wake-up of `shard`, whose last `empty` reserves found no job: up to three are ignored, and after more
    /// the reserve waits, by [`Turn::Later`].
    pub(crate) fn wake(&mut self, shard: Shard, empty: u32, now: Instant) -> Turn {
        let Some(more) = empty.checked_sub(FREE) else {
            self.waits.remove(&shard);
            return Turn::Now;
        };
        let step = FIRST.saturating_mul(1 << more.min(16)).min(LONGEST);
        let wait = step.mul_f64(self.rng.random_range(0.5..=1.0));
        let latest = self.waits.get(&shard).map_or(now + MAX_DELAY, |known| known.latest);
        self.waits.insert(shard, Wait { until: (now + wait).min(latest), latest });
        Turn::Later
    }

    /// Returns when the first wait ends; `None` if no shard waits.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.waits.values().map(|wait| wait.until).min()
    }

    /// Removes and returns the shards whose wait has ended.
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

    use super::*;

    fn shards() -> (WakeBackoff, [Shard; 2]) {
        (WakeBackoff::new(StdRng::seed_from_u64(1)), [Shard(0), Shard(1)])
    }

    #[test]
    fn a_notifier_that_finds_jobs_reserves_at_once() {
        let (mut backoff, shards) = shards();
        for empty in 0..FREE {
            assert_eq!(backoff.wake(shards[0], empty, Instant::now()), Turn::Now);
        }
        assert_eq!(backoff.next_due(), None);
    }

    #[test]
    fn waits_grow_with_every_empty_reserve_and_are_bounded() {
        let (mut backoff, shards) = shards();
        for (more, step) in [1, 2, 4, 8, 16, 32, 64, 80, 80].into_iter().enumerate() {
            let now = Instant::now();
            assert_eq!(backoff.wake(shards[0], FREE + more as u32, now), Turn::Later);
            let wait = backoff.next_due().unwrap() - now;
            let step = Duration::from_millis(step);
            assert!(wait >= step / 2 && wait <= step, "{wait:?} for {step:?}");
            assert_eq!(backoff.due(now + step), [shards[0]]);
        }
    }

    #[test]
    fn each_wake_up_restarts_the_wait_but_not_for_ever() {
        let (mut backoff, shards) = shards();
        let start = Instant::now();
        let mut now = start;
        // Again and again before the shortest wait is over.
        while now < start + MAX_DELAY {
            assert_eq!(backoff.due(now), [], "after {:?}", now - start);
            backoff.wake(shards[0], 100, now);
            now += Duration::from_millis(20);
        }
        assert_eq!(backoff.next_due(), Some(start + MAX_DELAY));
    }

    #[test]
    fn shards_wait_independently() {
        let (mut backoff, shards) = shards();
        let now = Instant::now();
        backoff.wake(shards[0], 100, now);
        backoff.wake(shards[1], FREE, now);
        assert_eq!(backoff.due(now + Duration::from_millis(2)), [shards[1]]);
        assert_eq!(backoff.wake(shards[0], 0, now), Turn::Now);
        assert_eq!(backoff.next_due(), None, "a success ends the wait");
    }
}
