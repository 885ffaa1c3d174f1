//! [`Outage`]: a [`Backoff`] that adds "log it once".

use std::time::Duration;

pub use ringback_core::backoff::{Backoff, FIRST, LONGEST};

use crate::random;

/// A [`Backoff`] that knows whether an outage is going on, so that its begin and its end are each
/// logged once.
#[derive(Debug)]
pub struct Outage {
    backoff: Backoff,
    is_ongoing: bool,
}

impl Outage {
    /// No outage yet; waits between [`FIRST`] and [`LONGEST`].
    #[must_use]
    pub fn new() -> Self {
        Self { backoff: Backoff::new(random::generator()), is_ongoing: false }
    }

    /// Records a failure. Returns true for the first one of an outage.
    #[must_use]
    pub fn begins(&mut self) -> bool {
        !std::mem::replace(&mut self.is_ongoing, true)
    }

    /// Returns the wait before the next attempt.
    pub fn wait(&mut self) -> Duration {
        self.backoff.next()
    }

    /// Records a success and resets the waits. Returns true when that ends an outage.
    pub fn ends(&mut self) -> bool {
        self.backoff.reset();
        std::mem::take(&mut self.is_ongoing)
    }
}

impl Default for Outage {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_success_starts_over() {
        let mut outage = Outage::new();
        assert!(!outage.ends() && outage.begins() && !outage.begins());
        for _ in 0..10 {
            outage.wait();
        }
        assert!(outage.ends() && !outage.ends());
        assert!(outage.wait() <= FIRST && outage.begins());
    }
}
