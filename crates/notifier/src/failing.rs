//! `FailingDestinations`: decides when the log says that a destination begins to fail, goes on failing, or has
//! recovered, instead of logging each attempt. Pure.

use std::collections::HashMap;
use std::time::Duration;

use ringback_core::clock::Timestamp;
use ringback_core::store_types::{FAILING_IDLE, FAILING_QUIET, Failures};

/// How many failing destinations are known. Others that begin to fail do not replace them.
const MAX: usize = 1_024;
/// How often a destination that goes on failing is reported.
const REPORT_EVERY: Duration = Duration::from_secs(60);

/// What to log about a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// The first failure.
    Begins,
    /// It goes on: failures since it began.
    Continues(Failing),
    /// A success ten seconds after the last failure.
    Ends(Failing),
}

/// How a destination has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failing {
    /// Failed attempts since it began.
    pub(crate) failures: u64,
    /// How long ago it began.
    pub(crate) lasts: Duration,
}

impl Failing {
    fn new(failures: &Failures, now: Timestamp) -> Self {
        Self { failures: failures.attempts(), lasts: now.since(failures.since()) }
    }
}

/// The destinations that fail, by origin.
#[derive(Default)]
pub(crate) struct FailingDestinations {
    /// How each fails, and when that was reported.
    failing: HashMap<String, (Failures, Timestamp)>,
    /// Set when all places were taken: no place is searched for before this time.
    full_until: Option<Timestamp>,
}

impl FailingDestinations {
    /// Records a failed attempt. Returns what to log: the first failure, and then at most a line a minute.
    pub(crate) fn failed(&mut self, origin: &str, failure: Failures) -> Option<Report> {
        let now = failure.last_at();
        if let Some((known, reported)) = self.failing.get_mut(origin)
            && !known.is_over(now)
        {
            known.add(&failure);
            if now.since(*reported) < REPORT_EVERY {
                return None;
            }
            *reported = now;
            return Some(Report::Continues(Failing::new(known, now)));
        }
        if !self.failing.contains_key(origin) && !self.has_place(now) {
            return None;
        }
        self.failing.insert(origin.to_owned(), (failure, now));
        Some(Report::Begins)
    }

    /// Records a success. Returns what to log: the end of the failures, if the last one was long enough ago.
    pub(crate) fn succeeded(&mut self, origin: &str, at: Timestamp) -> Option<Report> {
        let (failures, _) = self.failing.get_mut(origin)?;
        failures.succeeded(Some(at));
        if !failures.is_over(at) {
            return None;
        }
        self.failing.remove(origin).map(|(failures, _)| Report::Ends(Failing::new(&failures, at)))
    }

    /// Whether there is a place for one more destination. If all are taken, first removes those that have not failed
    /// for [`FAILING_IDLE`], at most once in [`FAILING_QUIET`].
    fn has_place(&mut self, now: Timestamp) -> bool {
        if self.failing.len() < MAX {
            return true;
        }
        if self.full_until.is_some_and(|until| now < until) {
            return false;
        }
        self.failing.retain(|_, (failures, _)| now.since(failures.last_at()) < FAILING_IDLE);
        self.full_until = Some(now.plus(FAILING_QUIET));
        self.failing.len() < MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGAN: Timestamp = Timestamp::from_millis(1_000_000);

    /// So many seconds after [`BEGAN`].
    fn at(seconds: u64) -> Timestamp {
        BEGAN.plus(Duration::from_secs(seconds))
    }

    fn failure(seconds: u64) -> Failures {
        Failures::new(at(seconds), Some(500), None)
    }

    #[test]
    fn a_failing_destination_is_reported_when_it_begins_each_minute_and_when_it_ends() {
        let mut failing = FailingDestinations::default();
        assert_eq!(failing.succeeded("http://a", at(0)), None);
        assert_eq!(failing.failed("http://a", failure(0)), Some(Report::Begins));
        assert_eq!(failing.failed("http://b", failure(0)), Some(Report::Begins));
        for second in 1..60 {
            assert_eq!(failing.failed("http://a", failure(second)), None);
        }
        let after = |seconds, failures| Failing { failures, lasts: Duration::from_secs(seconds) };
        assert_eq!(failing.failed("http://a", failure(60)), Some(Report::Continues(after(60, 61))));
        assert_eq!(failing.failed("http://a", failure(61)), None);
        assert_eq!(failing.succeeded("http://a", at(70)), None, "it failed nine seconds ago");
        assert_eq!(failing.succeeded("http://a", at(71)), Some(Report::Ends(after(71, 62))));
        assert_eq!(failing.failed("http://a", failure(72)), Some(Report::Begins));
    }

    #[test]
    fn a_destination_that_now_fails_and_now_succeeds_fails_all_the_time() {
        let mut failing = FailingDestinations::default();
        assert_eq!(failing.failed("http://a", failure(0)), Some(Report::Begins));
        for second in 1..60 {
            let reports =
                (failing.succeeded("http://a", at(second)), failing.failed("http://a", failure(second)));
            assert_eq!(reports, (None, None));
        }
        // The last success that is known of was long ago.
        assert_eq!(failing.succeeded("http://a", at(60)), None);
        assert_eq!(failing.failed("http://a", failure(3_600)), Some(Report::Begins));
    }

    #[test]
    fn of_too_many_destinations_the_first_are_known_until_they_no_longer_fail() {
        let mut failing = FailingDestinations::default();
        for n in 0..MAX {
            assert_eq!(failing.failed(&format!("http://{n}"), failure(0)), Some(Report::Begins));
        }
        assert_eq!(failing.failed("http://more", failure(20)), None);
        assert!(failing.succeeded("http://0", at(20)).is_some());
        assert_eq!(failing.failed("http://more", failure(20)), Some(Report::Begins));
        assert_eq!(failing.failed("http://most", failure(40)), None);
        let idle = FAILING_IDLE.as_secs();
        assert_eq!(failing.failed("http://most", failure(idle)), Some(Report::Begins));
        assert_eq!(failing.failing.len(), 2, "the others have not failed for long");
    }
}
