//! `ResourceBackoff`: pauses reserves while this machine is out of file descriptors or memory. Pure.
//!
//! Jobs reserved meanwhile could only be released again, so they are left to other notifiers.

use std::time::Duration;

use rand::rngs::StdRng;
use ringback_core::backoff::Backoff;
use tokio::time::Instant;

/// The first pause. It doubles if the shortage shows again soon after a pause.
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(5);

/// Whether a shortage is a new one. Only the first sign of a shortage is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shortage {
    Begins,
    Continues,
}

/// The pauses of a shortage.
pub(crate) struct ResourceBackoff {
    backoff: Backoff,
    last: Option<Pause>,
}

struct Pause {
    until: Instant,
    length: Duration,
}

impl ResourceBackoff {
    pub(crate) fn new(rng: StdRng) -> Self {
        Self { backoff: Backoff::between(FIRST, LONGEST, rng), last: None }
    }

    /// Records an attempt that failed because resources ran out, and begins a pause. During a pause it does
    /// nothing. Returns whether the shortage is a new one.
    pub(crate) fn record(&mut self, now: Instant) -> Shortage {
        let shortage = match &self.last {
            Some(pause) if now < pause.until => return Shortage::Continues,
            // A shortage is over after as much time without a sign as its last pause took.
            Some(pause) if now < pause.until + pause.length.max(FIRST) => Shortage::Continues,
            Some(_) | None => {
                self.backoff.reset();
                Shortage::Begins
            }
        };
        let length = self.backoff.next();
        self.last = Some(Pause { until: now + length, length });
        shortage
    }

    /// Returns the end of the last pause, which may be over; `None` if there was none. No job is reserved before.
    pub(crate) fn until(&self) -> Option<Instant> {
        self.last.as_ref().map(|pause| pause.until)
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;

    use super::*;

    #[test]
    fn pauses_grow_while_the_shortage_lasts_and_are_bounded() {
        let mut backoff = ResourceBackoff::new(StdRng::seed_from_u64(1));
        let mut now = Instant::now();
        assert_eq!(backoff.record(now), Shortage::Begins);
        for step in [200, 400, 800, 1_600, 3_200, 5_000, 5_000] {
            now = backoff.until().unwrap();
            assert_eq!(backoff.record(now), Shortage::Continues);
            let (pause, step) = (backoff.until().unwrap() - now, Duration::from_millis(step));
            assert!(pause >= step / 2 && pause <= step, "{pause:?} for {step:?}");
        }
    }

    #[test]
    fn failures_during_a_pause_do_not_extend_it() {
        let mut backoff = ResourceBackoff::new(StdRng::seed_from_u64(2));
        let now = Instant::now();
        backoff.record(now);
        let until = backoff.until();
        (0..100).for_each(|_| assert_eq!(backoff.record(now), Shortage::Continues));
        assert_eq!(backoff.until(), until);
    }

    #[test]
    fn a_shortage_after_a_calm_time_is_a_new_one() {
        let mut backoff = ResourceBackoff::new(StdRng::seed_from_u64(3));
        let mut now = Instant::now();
        for _ in 0..8 {
            backoff.record(now);
            now = backoff.until().unwrap();
        }
        now += LONGEST;
        assert_eq!(backoff.record(now), Shortage::Begins);
        assert!(backoff.until().unwrap() <= now + FIRST);
    }
}
