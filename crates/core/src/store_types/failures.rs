//! The failures of one destination and its breaker: how those of several processes are merged, when they are over, and
//! their report.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::breaker::{Breaker, Counts, Stage};
use crate::clock::Timestamp;
use crate::job::Tenant;

/// How long nothing must have failed for a success to end the failures, so that a destination that fails now and then
/// counts as one that fails.
pub const FAILING_QUIET: Duration = Duration::from_secs(10);
/// How long a destination is known after its last failure, if nothing is delivered there.
pub(super) const FAILING_RETENTION: Duration = Duration::from_secs(7 * 24 * 3600);

/// The failures of a destination: since when, how many, and the last one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failures {
    since: Timestamp,
    last: Timestamp,
    /// Failed attempts since it began.
    attempts: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    /// Why there was no answer at the last failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<Box<str>>,
    /// The last success. It ends the failure if it is later than the last failure and nothing fails for a while.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    success: Option<Timestamp>,
    #[serde(default)]
    breaker: Breaker,
}

impl Failures {
    /// The failures after one failed attempt.
    pub fn new(at: Timestamp, status: Option<u16>, error: Option<&str>) -> Self {
        Self {
            since: at,
            last: at,
            attempts: 1,
            status,
            error: error.map(Box::from),
            success: None,
            breaker: Breaker::default(),
        }
    }

    pub const fn since(&self) -> Timestamp {
        self.since
    }

    pub const fn last_at(&self) -> Timestamp {
        self.last
    }

    /// How many attempts have failed since the failures began.
    pub const fn attempts(&self) -> u64 {
        self.attempts
    }

    /// The status of the last failure; `None` if there was no answer.
    pub const fn last_status(&self) -> Option<u16> {
        self.status
    }

    /// Why there was no answer at the last failure; `None` if there was one.
    pub fn last_error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Merges failures of the same destination, of another process or tenant. Status and error are of the later one, and
    /// the breaker is the first that is not closed.
    pub fn add(&mut self, other: &Self) {
        if self.breaker.stage() == Stage::Closed && other.breaker.stage() != Stage::Closed {
            self.breaker = other.breaker.clone();
        }
        self.since = self.since.min(other.since);
        self.attempts = self.attempts.saturating_add(other.attempts);
        self.success = self.success.max(other.success);
        if other.last >= self.last {
            (self.last, self.status, self.error) = (other.last, other.status, other.error.clone());
        }
    }

    /// Records when an attempt succeeded, unless a later success is known. `None` changes nothing.
    pub fn succeeded(&mut self, at: Option<Timestamp>) {
        self.success = self.success.max(at);
    }

    /// Whether the destination no longer fails: its last failure is a week ago, or 10 s ago with a success after it
    /// while its breaker is closed.
    pub fn is_over(&self, now: Timestamp) -> bool {
        let quiet = now.since(self.last);
        quiet >= FAILING_RETENTION
            || quiet >= FAILING_QUIET
                && self.success.is_some_and(|success| success > self.last)
                && self.breaker.stage() == Stage::Closed
    }

    pub const fn breaker(&self) -> &Breaker {
        &self.breaker
    }

    /// Records the attempts of a report in the breaker. `jitter` is any number.
    pub(super) fn record(&mut self, report: &DestinationReport, now: Timestamp, jitter: u64) {
        self.breaker.record(report.counts, report.rate, now, jitter);
        if let Some(until) = report.slow_until {
            self.breaker.slow(until, now);
        }
    }

    /// Closes the breaker, and forgets what it has counted.
    pub(super) fn reset_breaker(&mut self) {
        self.breaker = Breaker::default();
    }
}

/// The failures and the last success at a destination that a process has seen since its last report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DestinationReport {
    /// Whose jobs went there.
    pub tenant: Option<Tenant>,
    /// The origin of their callback URLs.
    pub origin: Box<str>,
    pub failures: Option<Failures>,
    pub success: Option<Timestamp>,
    /// How the attempts ended.
    pub counts: Counts,
    /// How many a second succeeded in the minute before the failures began, if they began since the last report.
    pub rate: Option<u32>,
    /// Until when the receiver wants no callbacks, if it has said so.
    pub slow_until: Option<Timestamp>,
}

impl DestinationReport {
    /// Merges a later report of the same destination into this one.
    pub fn add(&mut self, later: Self) {
        self.success = self.success.max(later.success);
        self.counts.add(later.counts);
        self.rate = self.rate.or(later.rate);
        self.slow_until = self.slow_until.max(later.slow_until);
        match (&mut self.failures, later.failures) {
            (Some(failures), Some(later)) => failures.add(&later),
            (failures @ None, later) => *failures = later,
            (Some(_), None) => {}
        }
    }
}
