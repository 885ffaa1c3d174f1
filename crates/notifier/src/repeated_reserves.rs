//! `AskAgain`: plans when to repeat the reserve of a shard that may have jobs which the last reserve did not reach: it
//! saw only throttled lanes, or many deferred ones. The pause doubles up to a second while that goes on. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use ringback_core::store_types::Shard;
use tokio::time::Instant;

const FIRST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(1);

/// When to repeat the reserve of which shard.
#[derive(Debug, Default)]
pub(crate) struct AskAgain {
    at: BTreeMap<Shard, Instant>,
    pauses: BTreeMap<Shard, Duration>,
}

impl AskAgain {
    /// Plans to ask a shard again after its next pause, which is twice the last one. An earlier plan stays.
    pub(crate) fn later(&mut self, shard: Shard, now: Instant) {
        let pause = self.pauses.entry(shard).or_insert(FIRST / 2);
        *pause = (*pause * 2).min(LONGEST);
        // What is planned does not move to a later time.
        let at = self.at.entry(shard).or_insert(now + *pause);
        *at = (*at).min(now + *pause);
    }

    /// Makes the next pause of a shard the first one, 20 ms, again.
    pub(crate) fn reset(&mut self, shard: Shard) {
        self.pauses.remove(&shard);
    }

    /// When to ask the first shard; `None` if none is planned.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.at.values().min().copied()
    }

    pub(crate) fn take_due(&mut self, now: Instant) -> Vec<Shard> {
        let due: Vec<_> = self.at.iter().filter(|(_, at)| **at <= now).map(|(shard, _)| *shard).collect();
        self.at.retain(|shard, _| !due.contains(shard));
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_until_other_jobs_are_found() {
        let (mut again, now, shard) = (AskAgain::default(), Instant::now(), Shard(3));
        let pause = |again: &mut AskAgain| {
            again.later(shard, now);
            let pause = again.next().unwrap() - now;
            assert_eq!(again.take_due(now + pause - Duration::from_millis(1)), []);
            assert_eq!(again.take_due(now + pause), [shard]);
            assert_eq!(again.next(), None);
            pause.as_millis()
        };
        let pauses: Vec<_> = (0..8).map(|_| pause(&mut again)).collect();
        assert_eq!(pauses, [20, 40, 80, 160, 320, 640, 1000, 1000]);
        again.reset(shard);
        assert_eq!(pause(&mut again), 20);
    }
}
