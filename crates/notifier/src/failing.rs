//! Destinations that fail: when each begins to, how often it has since, and when it ends. So that a log says what
//! matters to people, and not each attempt. Pure.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

/// How many failing destinations are known. Of more, only those that failed last are.
const MAX: usize = 1_024;
/// How often a destination that goes on failing is reported.
const REPORT_EVERY: Duration = Duration::from_secs(60);

/// A success this long after the last failure ends it, so that one that now fails and now succeeds is one that fails.
const QUIET: Duration = Duration::from_secs(10);

/// What is worth a line in the log.
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

/// The destinations that fail, by origin.
#[derive(Default)]
pub(crate) struct FailingDestinations(HashMap<String, State>);

struct State {
    began: Instant,
    last: Instant,
    reported: Instant,
    failures: u64,
    /// A success came after the last failure.
    has_succeeded: bool,
}

impl State {
    fn new(now: Instant) -> Self {
        Self { began: now, last: now, reported: now, failures: 1, has_succeeded: false }
    }

    fn is_quiet(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.last) >= QUIET
    }

    fn failing(&self, now: Instant) -> Failing {
        Failing { failures: self.failures, lasts: now.saturating_duration_since(self.began) }
    }
}

impl FailingDestinations {
    /// Records a failed attempt.
    pub(crate) fn failed(&mut self, origin: &str, now: Instant) -> Option<Report> {
        let Some(state) = self.0.get_mut(origin) else {
            if self.0.len() == MAX {
                self.forget_oldest();
            }
            self.0.insert(origin.to_owned(), State::new(now));
            return Some(Report::Begins);
        };
        if state.has_succeeded && state.is_quiet(now) {
            *state = State::new(now);
            return Some(Report::Begins);
        }
        state.failures += 1;
        (state.last, state.has_succeeded) = (state.last.max(now), false);
        if now.saturating_duration_since(state.reported) < REPORT_EVERY {
            return None;
        }
        state.reported = now;
        Some(Report::Continues(state.failing(now)))
    }

    /// Records a success.
    pub(crate) fn succeeded(&mut self, origin: &str, now: Instant) -> Option<Report> {
        let state = self.0.get_mut(origin)?;
        if !state.is_quiet(now) {
            state.has_succeeded = true;
            return None;
        }
        self.0.remove(origin).map(|state| Report::Ends(state.failing(now)))
    }

    fn forget_oldest(&mut self) {
        let oldest = self.0.iter().min_by_key(|(_, state)| state.last).map(|(origin, _)| origin.clone());
        oldest.map(|origin| self.0.remove(&origin));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_failing_destination_is_reported_when_it_begins_each_minute_and_when_it_ends() {
        let (mut failing, began) = (FailingDestinations::default(), Instant::now());
        assert_eq!(failing.succeeded("http://a", began), None);
        assert_eq!(failing.failed("http://a", began), Some(Report::Begins));
        assert_eq!(failing.failed("http://b", began), Some(Report::Begins));
        for second in 1..60 {
            assert_eq!(failing.failed("http://a", began + second * SECOND), None);
        }
        let after = |seconds: u32, failures| Failing { failures, lasts: seconds * SECOND };
        assert_eq!(failing.failed("http://a", began + 60 * SECOND), Some(Report::Continues(after(60, 61))));
        assert_eq!(failing.failed("http://a", began + 61 * SECOND), None);
        assert_eq!(failing.succeeded("http://a", began + 70 * SECOND), None, "it failed nine seconds ago");
        assert_eq!(failing.succeeded("http://a", began + 71 * SECOND), Some(Report::Ends(after(71, 62))));
        assert_eq!(failing.failed("http://a", began + 72 * SECOND), Some(Report::Begins));
    }

    #[test]
    fn a_destination_that_now_fails_and_now_succeeds_fails_all_the_time() {
        let (mut failing, began) = (FailingDestinations::default(), Instant::now());
        assert_eq!(failing.failed("http://a", began), Some(Report::Begins));
        for second in 1..60 {
            let now = began + second * SECOND;
            assert_eq!((failing.succeeded("http://a", now), failing.failed("http://a", now)), (None, None));
        }
        // The last success that is known of was long ago.
        assert_eq!(failing.succeeded("http://a", began + 60 * SECOND), None);
        assert_eq!(failing.failed("http://a", began + 3_600 * SECOND), Some(Report::Begins));
    }

    #[test]
    fn of_many_destinations_those_that_failed_last_are_known() {
        let (mut failing, now) = (FailingDestinations::default(), Instant::now());
        for n in 0..=MAX {
            let at = now + u32::try_from(n).unwrap() * SECOND;
            assert_eq!(failing.failed(&format!("http://{n}"), at), Some(Report::Begins));
        }
        assert_eq!(failing.0.len(), MAX);
        assert_eq!(failing.succeeded("http://0", now), None, "forgotten");
        assert!(failing.succeeded("http://1", now + 12 * SECOND).is_some());
    }
}
