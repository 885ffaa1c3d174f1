//! `Paces`: how quickly the receivers of lanes answer, and so how many jobs a notifier may lease ahead of those in flight.
//! Pure.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

/// What is leased ahead begins within this time if the receiver goes on as before: longer than a reserve takes, and short
/// for a job that another notifier could have begun at once.
const PLANNED: Duration = Duration::from_millis(25);
/// At most so many times the limit of a lane are leased ahead.
const MOST: f64 = 3.0;
/// After so many callbacks in a row that have succeeded, their mean duration counts.
const TRUSTED: u32 = 32;
/// The weight of one callback in the mean.
const WEIGHT: f64 = 1.0 / 16.0;
/// How long after its last success a lane counts.
const FRESH: Duration = Duration::from_secs(1);
/// How many lanes are remembered. With more in use, none has so many callbacks.
const MAX_LANES: usize = 1_024;

/// The callbacks of lanes since the last one that failed.
#[derive(Default)]
pub(super) struct Paces(HashMap<String, Pace>);

struct Pace {
    /// In seconds.
    mean: f64,
    successes: u32,
    last: Instant,
}

impl Paces {
    /// Records the end of a callback. `has_failed` is `None` if that is not known.
    pub(super) fn ended(&mut self, lane: &str, has_failed: Option<bool>, took: Duration, now: Instant) {
        let took = took.as_secs_f64();
        match (has_failed, self.0.get_mut(lane)) {
            (Some(false), Some(pace)) => {
                pace.mean += (took - pace.mean) * WEIGHT;
                pace.successes = pace.successes.saturating_add(1);
                pace.last = now;
            }
            (Some(false), None) => {
                if self.0.len() >= MAX_LANES {
                    self.0.clear();
                }
                self.0.insert(lane.to_owned(), Pace { mean: took, successes: 1, last: now });
            }
            (Some(true), _) => drop(self.0.remove(lane)),
            (None, _) => {}
        }
    }

    /// Returns how many jobs of a lane may be leased ahead, where `limit` callbacks may be in flight.
    pub(super) fn ahead(&self, lane: &str, limit: usize, now: Instant) -> usize {
        let is_trusted = |pace: &&Pace| pace.successes >= TRUSTED && now < pace.last + FRESH;
        let Some(pace) = self.0.get(lane).filter(is_trusted) else { return 0 };
        let rounds = (PLANNED.as_secs_f64() / pace.mean).min(MOST);
        // At most three times a limit of 65,536.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is small and not negative"
        )]
        let ahead = (limit as f64 * rounds) as usize;
        ahead
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ahead(callbacks: impl IntoIterator<Item = (Option<bool>, u64)>) -> usize {
        let (mut paces, now) = (Paces::default(), Instant::now());
        for (has_failed, ms) in callbacks {
            paces.ended("a", has_failed, Duration::from_millis(ms), now);
        }
        assert_eq!(paces.ahead("a", 64, now + FRESH), 0);
        paces.ahead("a", 64, now + FRESH / 2)
    }

    fn successes(ms: u64) -> impl Iterator<Item = (Option<bool>, u64)> {
        std::iter::repeat_n((Some(false), ms), 40)
    }

    #[test]
    fn what_is_leased_ahead_begins_within_the_planned_time() {
        for (ms, expected) in [(0, 192), (1, 192), (8, 192), (25, 64), (50, 32), (10_000, 0)] {
            assert_eq!(ahead(successes(ms)), expected, "{ms} ms");
        }
    }

    #[test]
    fn nothing_is_leased_ahead_before_some_callbacks_and_after_a_failure() {
        assert_eq!(ahead(successes(1).take(31)), 0);
        assert_eq!(ahead(successes(1).chain([(None, 9_000)])), 192);
        assert_eq!(ahead(successes(1).chain([(Some(true), 1)])), 0);
        assert_eq!(ahead(successes(1).chain([(Some(true), 1)]).chain(successes(1))), 192);
    }

    #[test]
    fn a_receiver_that_becomes_slow_is_noticed() {
        assert_eq!(ahead(successes(1).chain(std::iter::repeat_n((Some(false), 2_000), 16))), 1);
    }

    #[test]
    fn few_lanes_are_remembered() {
        let (mut paces, now) = (Paces::default(), Instant::now());
        for n in 0..3 * MAX_LANES {
            paces.ended(&n.to_string(), Some(false), Duration::ZERO, now);
            assert!(paces.0.len() <= MAX_LANES);
        }
    }
}
