//! Exponential backoff with jitter. Only computes the waits; the caller sleeps.

use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;

/// The default first wait, before jitter.
pub const FIRST: Duration = Duration::from_millis(50);
/// The default longest wait.
pub const LONGEST: Duration = Duration::from_secs(1);

/// Waits that double up to a maximum. Each wait is drawn from the upper half of its step, so that
/// processes that lost the same server do not all reconnect at once.
#[derive(Debug)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    step: Duration,
    rng: StdRng,
}

impl Backoff {
    /// Waits between [`FIRST`] and [`LONGEST`], with jitter from `rng`.
    #[must_use]
    pub fn new(rng: StdRng) -> Self {
        Self::between(FIRST, LONGEST, rng)
    }

    /// Waits between `first` and `longest`, with jitter from `rng`.
    #[must_use]
    pub fn between(first: Duration, longest: Duration, rng: StdRng) -> Self {
        Self { first, longest, step: first, rng }
    }

    /// Returns a random wait between half of the step and the step, then doubles the step, up to the longest wait.
    #[expect(clippy::should_implement_trait, reason = "it never ends, so it is not an iterator")]
    pub fn next(&mut self) -> Duration {
        let step = self.step;
        self.step = (step * 2).min(self.longest);
        step.mul_f64(self.rng.random_range(0.5..=1.0))
    }

    /// Starts again at the first step, after an attempt that succeeded.
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
        backoff.reset();
        assert!(backoff.next() <= FIRST);
    }
}
