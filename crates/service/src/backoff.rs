//! How long to wait between attempts to reach something that is gone.

use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;

/// The first wait, before jitter.
pub const FIRST: Duration = Duration::from_millis(50);
/// No wait is longer.
pub const LONGEST: Duration = Duration::from_secs(1);

/// Waits that double from [`FIRST`] to [`LONGEST`], each drawn from the upper half of its step, so
/// that many processes that lost the same server do not come back together.
#[derive(Debug)]
pub struct Backoff {
    step: Duration,
    rng: StdRng,
}

impl Backoff {
    /// Begins at the first step; `rng` spreads the waits.
    #[must_use]
    pub fn new(rng: StdRng) -> Self {
        Self { step: FIRST, rng }
    }

    /// How long to wait before the next attempt.
    #[expect(clippy::should_implement_trait, reason = "it never ends, so it is no iterator")]
    pub fn next(&mut self) -> Duration {
        let step = self.step;
        self.step = (step * 2).min(LONGEST);
        step.mul_f64(self.rng.random_range(0.5..=1.0))
    }

    /// Back to the first step: an attempt succeeded.
    pub fn reset(&mut self) {
        self.step = FIRST;
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
