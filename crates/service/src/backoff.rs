//! How long to wait between attempts to reach something that is gone.

use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;

/// The first wait after a server was lost, before jitter.
pub const FIRST: Duration = Duration::from_millis(50);
/// No wait is longer.
pub const LONGEST: Duration = Duration::from_secs(1);

/// Waits that double from a first to a longest one, each drawn from the upper half of its step, so
/// that many processes that lost the same server do not come back together.
#[derive(Debug)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    step: Duration,
    rng: StdRng,
}

impl Backoff {
    /// From [`FIRST`] to [`LONGEST`]; `rng` spreads the waits.
    #[must_use]
    pub fn new(rng: StdRng) -> Self {
        Self::between(FIRST, LONGEST, rng)
    }

    /// From `first` to `longest`.
    #[must_use]
    pub fn between(first: Duration, longest: Duration, rng: StdRng) -> Self {
        Self { first, longest, step: first, rng }
    }

    /// How long to wait before the next attempt.
    #[expect(clippy::should_implement_trait, reason = "it never ends, so it is no iterator")]
    pub fn next(&mut self) -> Duration {
        let step = self.step;
        self.step = (step * 2).min(self.longest);
        step.mul_f64(self.rng.random_range(0.5..=1.0))
    }

    /// Back to the first step: an attempt succeeded.
    pub fn reset(&mut self) {
        self.step = self.first;
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;

    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_stay_in_the_upper_half_of_their_step() {
        let mut backoff = Backoff::new(StdRng::seed_from_u64(1));
        for step in [50, 100, 200, 400, 800, 1_000, 1_000, 1_000] {
            let wait = backoff.next();
            let step = Duration::from_millis(step);
            assert!(wait >= step / 2 && wait <= step, "{wait:?} for {step:?}");
        }
    }

    #[test]
    fn a_success_starts_over() {
        let mut backoff = Backoff::new(StdRng::seed_from_u64(2));
        for _ in 0..10 {
            backoff.next();
        }
        backoff.reset();
        assert!(backoff.next() <= FIRST);
    }
}
