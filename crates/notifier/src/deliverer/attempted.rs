//! The result of an attempt: how it ended, which error it has, whether the receiver failed, and whether its answer is
//! kept for the attempt log or a notice. Pure.

use std::time::Duration;

use http::StatusCode;
use ringback_core::breaker::Counts;
use ringback_core::job::DEFAULT_TIMEOUT;
use ringback_core::outcome::{LastAttempt, Outcome};
use ringback_core::store_types::{Lease, Success};
use ringback_core::topic_policy::{Logging, Policy};
use tokio::time::Instant;

use crate::client::{PostError, PostResponse};
use crate::response_class::is_later;

/// How an attempt ended.
pub(super) enum Ending {
    Answered(Result<PostResponse, PostError>),
    /// The job had expired, so nothing was sent.
    Expired,
    /// The lease expired: another notifier may have the job by now.
    LeaseLost,
    /// The grace period of the shutdown is nearly over.
    CutOff,
}

#[derive(Clone, Copy)]
pub(super) struct KeptAnswers {
    /// Which attempts are logged with their responses.
    pub(super) logging: Logging,
    /// Whether somebody wants to know of a success.
    is_noted: bool,
    attempt: u32,
}

impl KeptAnswers {
    pub(super) fn new(logging: Logging, lease: &Lease, policy: Option<&Policy>) -> Self {
        let is_noted =
            lease.delivery.on_done.is_some() || policy.is_some_and(|policy| policy.on_done.is_some());
        Self { logging, is_noted, attempt: lease.attempt }
    }

    /// The status and the answer of a success for its notice; `None` if there is no notice, or it is no success.
    pub(super) fn success(self, attempted: &Attempted, outcome: Option<&Outcome>) -> Option<Success> {
        let response =
            attempted.response().filter(|_| self.is_noted && outcome == Some(&Outcome::Complete))?;
        Some(Success { status: response.status.as_u16(), answer: response.body.clone() })
    }

    /// Whether the answer with this status is kept, for the attempt log or a notice.
    pub(super) fn is_kept(self, status: StatusCode) -> bool {
        if status.is_success() {
            self.is_noted || self.logging.notes_success(self.attempt)
        } else {
            self.logging.notes_failure()
        }
    }
}

/// An attempt that has ended.
pub(super) struct Attempted {
    pub(super) ending: Ending,
    pub(super) started: Instant,
    pub(super) took: Duration,
    /// The time from due to sent.
    pub(super) lateness: Duration,
}

impl Attempted {
    pub(super) fn response(&self) -> Option<&PostResponse> {
        match &self.ending {
            Ending::Answered(Ok(response)) => Some(response),
            Ending::Answered(Err(_)) | Ending::Expired | Ending::LeaseLost | Ending::CutOff => None,
        }
    }

    pub(super) fn status(&self) -> Option<u16> {
        self.response().map(|response| response.status.as_u16())
    }

    /// The class of the error; `None` if the status says enough.
    pub(super) fn error(&self) -> Option<&'static str> {
        match &self.ending {
            Ending::Answered(Ok(response)) => response.error(),
            Ending::Answered(Err(error)) => Some((*error).into()),
            Ending::Expired => Some("expired"),
            Ending::LeaseLost => Some("lease lost"),
            Ending::CutOff => Some("shutdown"),
        }
    }

    /// Whether nothing was sent because the receiver has too many slow calls, or a secret cannot be opened. Both have
    /// log lines of their own.
    pub(super) fn is_deferred(&self) -> bool {
        matches!(self.ending, Ending::Answered(Err(PostError::Crowded | PostError::Unsigned)))
    }

    pub(super) fn is_out_of_resources(&self) -> bool {
        matches!(self.ending, Ending::Answered(Err(PostError::Local)))
    }

    /// Whether the receiver has failed, whatever the outcome of the job; `None` if nothing was sent, or the end of the
    /// attempt is not known.
    pub(super) fn has_failed(&self) -> Option<bool> {
        match &self.ending {
            Ending::Answered(Ok(response)) => Some(!(response.status.is_success() && response.is_expected)),
            Ending::Answered(Err(
                PostError::Ports | PostError::Local | PostError::Crowded | PostError::Unsigned,
            ))
            | Ending::Expired
            | Ending::LeaseLost
            | Ending::CutOff => None,
            Ending::Answered(Err(_)) => Some(true),
        }
    }

    /// How the attempt counts in the breaker of its destination; `None` if nothing was sent, the end is not known, it timed
    /// out sooner than jobs do by default, which may be the job's fault, or the receiver wants this job later.
    pub(super) fn counts(&self) -> Option<Counts> {
        let (outages, answers) = match &self.ending {
            Ending::Answered(Ok(response)) if is_later(response) => return None,
            Ending::Answered(Ok(response)) => match response.status.as_u16() {
                429 => (0, 0),
                502..=504 => (1, 0),
                _ => (0, 1),
            },
            Ending::Answered(Err(PostError::Timeout)) if self.took < DEFAULT_TIMEOUT => return None,
            Ending::Answered(Err(error)) => (u32::from(error.is_outage()), 0),
            Ending::Expired | Ending::LeaseLost | Ending::CutOff => return None,
        };
        self.has_failed().map(|_| Counts { attempts: 1, outages, answers })
    }

    /// Whether it is a failure of the destination if it did not succeed: not an answer that is about the job alone.
    pub(super) fn is_about_destination(&self) -> bool {
        self.response().is_none_or(|response| response.status != StatusCode::GONE && !is_later(response))
    }

    /// The attempt as the last failed one of its job.
    pub(super) fn last(&self, lease: &Lease) -> LastAttempt {
        LastAttempt {
            at: lease.clock().at(self.started),
            status: self.status(),
            error: self.error().map(str::to_owned),
            duration: self.took,
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use http::header::RETRY_AFTER;

    use super::*;

    #[test]
    fn only_what_says_that_nobody_is_there_is_an_outage() {
        let counts = |error, took| {
            let (ending, lateness) = (Ending::Answered(Err(error)), Duration::ZERO);
            let attempted = Attempted { ending, started: Instant::now(), took, lateness };
            attempted.counts().map(|counts| (counts.outages, counts.answers))
        };
        assert_eq!(counts(PostError::Refused, Duration::ZERO), Some((1, 0)));
        assert_eq!(counts(PostError::TlsExpired, Duration::ZERO), Some((1, 0)));
        assert_eq!(counts(PostError::Timeout, DEFAULT_TIMEOUT), Some((1, 0)));
        assert_eq!(counts(PostError::Timeout, DEFAULT_TIMEOUT / 2), None);
        assert_eq!(counts(PostError::HeadTooLarge, Duration::ZERO), Some((0, 0)));
        assert_eq!(counts(PostError::Crowded, Duration::ZERO), None);
    }

    #[test]
    fn an_answer_counts_as_an_outage_as_an_answer_as_neither_or_not_at_all() {
        let counts = |status, later: bool| {
            let status = StatusCode::from_u16(status).unwrap();
            let after = later.then(|| (RETRY_AFTER, "5".parse().unwrap()));
            let (headers, body) = (HeaderMap::from_iter(after), bytes::Bytes::new());
            let ending = Ending::Answered(Ok(PostResponse { status, headers, body, is_expected: true }));
            let (took, lateness) = (Duration::ZERO, Duration::ZERO);
            let attempted = Attempted { ending, started: Instant::now(), took, lateness };
            let counts = attempted.counts().map(|counts| (counts.attempts, counts.outages, counts.answers));
            (counts, attempted.is_about_destination())
        };
        for status in [200, 301, 400, 404, 425, 500, 501, 505] {
            assert_eq!(counts(status, false), (Some((1, 0, 1)), true), "{status}");
        }
        assert_eq!(counts(410, false), (Some((1, 0, 1)), false));
        for status in [502, 503, 504] {
            assert_eq!(counts(status, true), (Some((1, 1, 0)), true), "{status}");
        }
        assert_eq!(counts(429, true), (Some((1, 0, 0)), true));
        assert_eq!(counts(425, true), (None, false), "this job later");
    }

    #[test]
    fn a_receiver_has_failed_only_where_it_was_called() {
        for (ending, expected) in [
            (Ending::Answered(Err(PostError::Timeout)), Some(true)),
            (Ending::Answered(Err(PostError::Refused)), Some(true)),
            (Ending::Answered(Err(PostError::Crowded)), None),
            (Ending::Answered(Err(PostError::Local)), None),
            (Ending::Expired, None),
            (Ending::CutOff, None),
        ] {
            let (took, lateness) = (Duration::ZERO, Duration::ZERO);
            let attempted = Attempted { ending, started: Instant::now(), took, lateness };
            assert_eq!(attempted.has_failed(), expected, "{:?}", attempted.error());
        }
    }
}
