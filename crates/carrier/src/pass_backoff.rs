//! Backoff per kind of pass: a kind whose pass failed waits, with jitter, and the others go on. Callers pass the time.

use std::array;
use std::time::Duration;

use rand::rngs::StdRng;
use ringback_core::backoff::Backoff;
use strum::VariantArray as _;
use tokio::time::Instant;

use crate::pace::{NextDue, PassKind};

/// The backoff of each kind of pass over a shard.
pub(crate) struct PassBackoff([KindBackoff; 3]);

struct KindBackoff {
    backoff: Backoff,
    /// When to try again; `None` if the last pass succeeded.
    until: Option<Instant>,
}

impl PassBackoff {
    /// Starts without failures. The generators provide the jitter.
    pub(crate) fn new(generators: [StdRng; 3]) -> Self {
        Self(generators.map(|rng| KindBackoff { backoff: Backoff::new(rng), until: None }))
    }

    /// Records a failure at `now`, which begins the kind's next wait. Returns true if no kind was failing before.
    pub(crate) fn failed(&mut self, kind: PassKind, now: Instant) -> bool {
        let is_first = !self.is_any_failing();
        let of_kind = &mut self.0[kind as usize];
        of_kind.until = Some(now + of_kind.backoff.next());
        is_first
    }

    /// Records a success, which resets the kind's backoff. Returns true if the kind was failing and no other kind is.
    pub(crate) fn succeeded(&mut self, kind: PassKind) -> bool {
        let of_kind = &mut self.0[kind as usize];
        of_kind.backoff.reset();
        of_kind.until.take().is_some() && !self.is_any_failing()
    }

    /// Returns `next_due` with each time extended to the end of its kind's wait. `None` stays `None`.
    pub(crate) fn delay(&self, next_due: NextDue, now: Instant) -> NextDue {
        let later = |kind: PassKind| Some(next_due.0[kind as usize]?.max(self.wait(kind, now)));
        NextDue(array::from_fn(|n| later(PassKind::VARIANTS[n])))
    }

    /// Returns the kind with the shortest wait (`wanted` if it is equal) and that wait, zero if the kind may run now.
    pub(crate) fn allowed(&self, wanted: PassKind, now: Instant) -> (PassKind, Duration) {
        let second = wanted.after_failure();
        let waits = [second, second.after_failure()].map(|kind| (kind, self.wait(kind, now)));
        let first = (wanted, self.wait(wanted, now));
        waits.into_iter().fold(first, |best, other| if other.1 < best.1 { other } else { best })
    }

    fn wait(&self, kind: PassKind, now: Instant) -> Duration {
        let until = self.0[kind as usize].until;
        until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
    }

    fn is_any_failing(&self) -> bool {
        self.0.iter().any(|of_kind| of_kind.until.is_some())
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;
    use ringback_core::backoff::{FIRST, LONGEST};

    use super::PassKind::{Evict, Promote, Recover};
    use super::*;

    fn backoff() -> PassBackoff {
        PassBackoff::new([1, 2, 3].map(StdRng::seed_from_u64))
    }

    #[test]
    fn a_kind_that_keeps_failing_waits_longer_whatever_else_succeeds() {
        let (mut backoff, mut now) = (backoff(), Instant::now());
        assert!(backoff.failed(Recover, now));
        for _ in 0..10 {
            let busy = NextDue([Some(Duration::ZERO), Some(Duration::ZERO), None]);
            assert!(!backoff.succeeded(Promote));
            let NextDue([due, lease, dead]) = backoff.delay(busy, now);
            assert!((due, dead) == (busy.0[0], None) && lease > busy.0[1], "{lease:?}");
            assert_eq!(backoff.allowed(Promote, now), (Promote, Duration::ZERO));
            now += lease.unwrap();
            assert_eq!(backoff.delay(busy, now), busy);
            assert!(!backoff.failed(Recover, now), "it is reported once");
        }
        assert!(backoff.wait(Recover, now) >= LONGEST / 2);
        assert!(backoff.succeeded(Recover));
        assert!(backoff.failed(Recover, now) && backoff.wait(Recover, now) <= FIRST);
    }

    #[test]
    fn another_kind_replaces_one_that_waits_and_the_soonest_goes_if_all_wait() {
        let (mut backoff, now) = (backoff(), Instant::now());
        backoff.failed(Promote, now);
        assert_eq!(backoff.allowed(Promote, now), (Recover, Duration::ZERO));
        backoff.failed(Recover, now);
        assert_eq!(backoff.allowed(Promote, now), (Evict, Duration::ZERO));
        backoff.failed(Evict, now);
        let soonest = PassKind::VARIANTS.iter().map(|kind| (*kind, backoff.wait(*kind, now)));
        let soonest = soonest.min_by_key(|(_, wait)| *wait).unwrap();
        assert_eq!(backoff.allowed(Promote, now), soonest);
        assert!(soonest.1 > Duration::ZERO);
        assert!(!backoff.succeeded(Evict) && !backoff.succeeded(Promote) && backoff.succeeded(Recover));
    }
}
