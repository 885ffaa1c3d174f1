//! Destinations that fail: when each begins to, how often it has since, and when it ends. So that a log says what
//! matters to people, and not each attempt. Pure.

use std::collections::HashMap;
use std::time::Duration;

use ringback_core::contract::{FAILING_IDLE, FAILING_QUIET};
use tokio::time::Instant;

/// How many failing destinations are known. Whoever has many names cannot push out others that fail.
const MAX: usize = 1_024;
/// How often a destination that goes on failing is reported.
const REPORT_EVERY: Duration = Duration::from_secs(60);

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
pub(crate) struct FailingDestinations {
    states: HashMap<String, State>,
    /// Set when all places were found to be taken: no place is looked for before.
    full_until: Option<Instant>,
}

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
        now.saturating_duration_since(self.last) >= FAILING_QUIET
    }

    fn failing(&self, now: Instant) -> Failing {
        Failing { failures: self.failures, lasts: now.saturating_duration_since(self.began) }
    }
}

impl FailingDestinations {
    /// Records a failed attempt.
    pub(crate) fn failed(&mut self, origin: &str, now: Instant) -> Option<Report> {
        let Some(state) = self.states.get_mut(origin) else {
            if !self.has_place(now) {
                return None;
            }
            self.states.insert(origin.to_owned(), State::new(now));
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
        let state = self.states.get_mut(origin)?;
        if !state.is_quiet(now) {
            state.has_succeeded = true;
            return None;
        }
        self.states.remove(origin).map(|state| Report::Ends(state.failing(now)))
    }

    /// Whether one more can be known.
    fn has_place(&mut self, now: Instant) -> bool {
        if self.states.len() < MAX {
            return true;
        }
        if self.full_until.is_some_and(|until| now < until) {
            return false;
        }
        self.states.retain(|_, state| now.saturating_duration_since(state.last) < FAILING_IDLE);
        self.full_until = Some(now + FAILING_QUIET);
        self.states.len() < MAX
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
    fn of_too_many_destinations_the_first_are_known_until_they_no_longer_fail() {
        let (mut failing, now) = (FailingDestinations::default(), Instant::now());
        for n in 0..MAX {
            assert_eq!(failing.failed(&format!("http://{n}"), now), Some(Report::Begins));
        }
        assert_eq!(failing.failed("http://more", now + 20 * SECOND), None);
        assert!(failing.succeeded("http://0", now + 20 * SECOND).is_some());
        assert_eq!(failing.failed("http://more", now + 20 * SECOND), Some(Report::Begins));
        assert_eq!(failing.failed("http://most", now + 40 * SECOND), None);
        assert_eq!(failing.failed("http://most", now + FAILING_IDLE), Some(Report::Begins));
        assert_eq!(failing.states.len(), 2, "the others have not failed for long");
    }
}
