//! The history of a simulation: the attempts as the receiver saw them, the times of the faults, and a log of all
//! attempts, faults and calls of clients, in order.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ringback_core::clock::{Clock as _, Timestamp};

use crate::clock::VirtualClock;

/// What the receiver does with an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseKind {
    Status(u16),
    /// 429 with a Retry-After of so many seconds.
    RetryAfter(u64),
    /// The connection breaks.
    Broken,
    /// No answer is sent.
    Hang,
}

/// An attempt at the receiver.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    /// The job, as `topic/id`.
    pub(crate) job: String,
    pub(crate) webhook_id: String,
    pub(crate) number: u32,
    /// The due time that the callback named.
    pub(crate) due: Timestamp,
    pub(crate) body: String,
    pub(crate) started: Timestamp,
    /// When the answer was sent, or when the notifier gave up; `None` while it runs.
    pub(crate) ended: Option<Timestamp>,
    /// What the receiver did; `None` while the attempt runs, or if the notifier gave up first.
    pub(crate) answered: Option<ResponseKind>,
}

impl Attempt {
    /// Whether the receiver answered with a status of 200 to 299.
    pub(crate) fn is_success(&self) -> bool {
        matches!(self.answered, Some(ResponseKind::Status(200..=299)))
    }
}

#[derive(Default)]
struct Records {
    attempts: Vec<Attempt>,
    /// The time from the beginning to the end of each fault.
    faults: Vec<(Timestamp, Option<Timestamp>)>,
    log: String,
}

/// The history, shared by the receiver, the clients and the code that injects faults.
#[derive(Clone)]
pub(crate) struct History {
    clock: VirtualClock,
    records: Arc<Mutex<Records>>,
}

impl History {
    pub(crate) fn new(clock: VirtualClock) -> Self {
        Self { clock, records: Arc::default() }
    }

    /// Adds a line with the time to the log.
    pub(crate) fn note(&self, what: impl std::fmt::Display) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.lock().log, "{} {what}", self.clock.now());
    }

    /// Records and logs the begin of an attempt. Returns its place, for [`Self::end`].
    pub(crate) fn begin(&self, attempt: Attempt) -> usize {
        self.note(format_args!("attempt {} of {}", attempt.number, attempt.job));
        let attempts = &mut self.lock().attempts;
        attempts.push(attempt);
        attempts.len() - 1
    }

    /// Records and logs that an attempt ends now, with this answer or none. Does nothing if it has ended already.
    pub(crate) fn end(&self, place: usize, answer: Option<ResponseKind>) {
        let now = self.clock.now();
        let mut records = self.lock();
        let attempt = &mut records.attempts[place];
        if attempt.ended.is_some() {
            return;
        }
        (attempt.ended, attempt.answered) = (Some(now), answer);
        let (number, job) = (attempt.number, attempt.job.clone());
        drop(records);
        self.note(format_args!("attempt {number} of {job} ends: {answer:?}"));
    }

    pub(crate) fn attempts(&self) -> Vec<Attempt> {
        self.lock().attempts.clone()
    }

    /// Records and logs that a fault begins now. Returns its place, for [`Self::fault_ends`].
    pub(crate) fn fault(&self, what: impl std::fmt::Display) -> usize {
        self.note(format_args!("fault: {what}"));
        let now = self.clock.now();
        let faults = &mut self.lock().faults;
        faults.push((now, None));
        faults.len() - 1
    }

    pub(crate) fn fault_ends(&self, place: usize) {
        self.note(format_args!("fault {place} ends"));
        let now = self.clock.now();
        self.lock().faults[place].1 = Some(now);
    }

    /// Whether a fault lasted at some time from `from` to `to`, or ended at most `grace` before `from`.
    pub(crate) fn is_any_fault(&self, from: Timestamp, to: Timestamp, grace: std::time::Duration) -> bool {
        let ends = |end: Option<Timestamp>| end.is_none_or(|end| end.plus(grace) >= from);
        self.lock().faults.iter().any(|(begin, end)| *begin <= to && ends(*end))
    }

    /// Returns the log, one line for each event.
    pub(crate) fn log(&self) -> String {
        self.lock().log.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
