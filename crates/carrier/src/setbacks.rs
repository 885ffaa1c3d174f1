//! What failed of a shard's passes: each kind is left alone for a while that grows, and the
//! others go on meanwhile. Pure but for the jitter.

use std::time::Duration;

use rand::rngs::StdRng;
use ringback_service::backoff::Backoff;
use tokio::time::Instant;

use crate::pace::{self, Next, Waits};

/// The kinds of passes, and what became of their last ones.
pub(crate) struct Setbacks {
    promote: Setback,
    recover: Setback,
    expire: Setback,
}

struct Setback {
    backoff: Backoff,
    /// When to try again; none where the last pass worked.
    until: Option<Instant>,
}

impl Setback {
    fn new(rng: StdRng) -> Self {
        Self { backoff: Backoff::new(rng), until: None }
    }

    fn left(&self, now: Instant) -> Duration {
        self.until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
    }
}

impl Setbacks {
    /// None yet. The generators spread the times.
    pub(crate) fn new([promote, recover, expire]: [StdRng; 3]) -> Self {
        let [promote, recover, expire] = [promote, recover, expire].map(Setback::new);
        Self { promote, recover, expire }
    }

    /// A pass has failed. True where none had before.
    pub(crate) fn failed(&mut self, what: Next, now: Instant) -> bool {
        let is_first = !self.any();
        let setback = self.of(what);
        setback.until = Some(now + setback.backoff.next());
        is_first
    }

    /// A pass has worked. True where it was the last one that had failed.
    pub(crate) fn worked(&mut self, what: Next) -> bool {
        let setback = self.of(what);
        setback.backoff.reset();
        setback.until.take().is_some() && !self.any()
    }

    /// What is left alone waits for its time.
    pub(crate) fn hold(&self, waits: Waits, now: Instant) -> Waits {
        let held = |wait: Option<Duration>, setback: &Setback| wait.map(|wait| wait.max(setback.left(now)));
        Waits {
            due: held(waits.due, &self.promote),
            lease: held(waits.lease, &self.recover),
            dead: held(waits.dead, &self.expire),
        }
    }

    /// A pass that may be tried, this one if possible, and how long it is until then.
    pub(crate) fn allowed(&mut self, wanted: Next, now: Instant) -> (Next, Duration) {
        let second = pace::after_failure(wanted);
        let third = pace::after_failure(second);
        let [one, two, three] = [wanted, second, third].map(|what| (what, self.of(what).left(now)));
        let sooner = |a: (Next, Duration), b: (Next, Duration)| if b.1 < a.1 { b } else { a };
        sooner(sooner(one, two), three)
    }

    fn any(&self) -> bool {
        [&self.promote, &self.recover, &self.expire].iter().any(|setback| setback.until.is_some())
    }

    fn of(&mut self, what: Next) -> &mut Setback {
        match what {
            Next::Promote | Next::Sleep(_) => &mut self.promote,
            Next::Recover => &mut self.recover,
            Next::Expire => &mut self.expire,
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;
    use ringback_service::backoff::{FIRST, LONGEST};

    use super::*;

    fn setbacks() -> Setbacks {
        Setbacks::new([1, 2, 3].map(StdRng::seed_from_u64))
    }

    #[test]
    fn what_fails_again_and_again_waits_longer_whatever_else_works() {
        let (mut all, mut now) = (setbacks(), Instant::now());
        assert!(all.failed(Next::Recover, now));
        for _ in 0..10 {
            let busy = Waits { due: Some(Duration::ZERO), lease: Some(Duration::ZERO), dead: None };
            assert!(!all.worked(Next::Promote));
            let held = all.hold(busy, now);
            assert!(held.due == busy.due && held.lease > busy.lease, "{held:?}");
            assert_eq!(all.allowed(Next::Promote, now), (Next::Promote, Duration::ZERO));
            now += held.lease.unwrap();
            assert_eq!(all.hold(busy, now), busy);
            assert!(!all.failed(Next::Recover, now), "it was told before");
        }
        assert!(all.recover.left(now) >= LONGEST / 2);
        assert!(all.worked(Next::Recover));
        assert!(all.failed(Next::Recover, now) && all.recover.left(now) <= FIRST);
    }

    #[test]
    fn another_kind_is_tried_in_place_of_what_waits_and_the_soonest_where_all_do() {
        let (mut all, now) = (setbacks(), Instant::now());
        all.failed(Next::Promote, now);
        assert_eq!(all.allowed(Next::Promote, now), (Next::Recover, Duration::ZERO));
        all.failed(Next::Recover, now);
        assert_eq!(all.allowed(Next::Promote, now), (Next::Expire, Duration::ZERO));
        all.failed(Next::Expire, now);
        let waits = [Next::Promote, Next::Recover, Next::Expire].map(|what| (all.of(what).left(now), what));
        let (wait, what) = waits.into_iter().min_by_key(|(wait, _)| *wait).unwrap();
        assert_eq!(all.allowed(Next::Promote, now), (what, wait));
        assert!(wait > Duration::ZERO);
        assert!(!all.worked(Next::Expire) && !all.worked(Next::Promote) && all.worked(Next::Recover));
    }
}
