//! When an outage begins and ends, so that each is logged once: [`Outage`], which has a [`Backoff`] too, and
//! [`PartialOutage`], of something that fails in parts.

use std::collections::BTreeSet;
use std::time::Duration;

use ringback_core::backoff::Backoff;

use crate::random;

/// A [`Backoff`] that knows whether an outage is going on, so that its begin and its end are each
/// logged once.
#[derive(Debug)]
pub struct Outage {
    backoff: Backoff,
    is_ongoing: bool,
}

impl Outage {
    /// No outage yet; with the default waits.
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

/// An outage of some parts of a dependency, such as shards. Its begin and its end are each logged once, although calls
/// to other parts succeed meanwhile.
#[derive(Debug)]
pub struct PartialOutage<K>(BTreeSet<K>);

impl<K: Ord> PartialOutage<K> {
    /// Records a failure. Returns true if no part had failed before.
    #[must_use]
    pub fn failed(&mut self, part: K) -> bool {
        let begins = self.0.is_empty();
        self.0.insert(part);
        begins
    }

    /// Records a success of a part. Returns true if that had failed and no part fails any more.
    pub fn succeeded(&mut self, part: &K) -> bool {
        self.0.remove(part) && self.0.is_empty()
    }
}

impl<K> Default for PartialOutage<K> {
    fn default() -> Self {
        Self(BTreeSet::new())
    }
}

#[cfg(test)]
mod tests {
    use ringback_core::backoff::FIRST;

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

    #[test]
    fn an_outage_of_some_parts_begins_and_ends_once_whatever_others_do() {
        let mut outage = PartialOutage::default();
        assert!(!outage.succeeded(&1) && outage.failed(1) && !outage.failed(1));
        assert!(!outage.failed(2) && !outage.succeeded(&3));
        assert!(!outage.succeeded(&1) && outage.succeeded(&2) && !outage.succeeded(&2));
        assert!(outage.failed(1));
    }
}
