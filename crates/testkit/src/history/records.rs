//! The records that are kept of lines about jobs. They have a fixed size and are sorted by job at the end.

use ringback_core::store_types::TransitionName;

use super::entry::{JobState, MoveKind, SettleKind};

/// No number: an absent job, line or key.
pub(crate) const NONE: u32 = u32::MAX;
/// A time that is not known, after all others.
pub(crate) const NEVER: u64 = u64::MAX;

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallOutcome {
    Ok,
    Refused,
    Unknown,
}

/// A call, from its request to its outcome.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) line: u32,
    /// The line of the outcome, or [`NONE`].
    pub(crate) outcome_line: u32,
    pub(crate) sent: u64,
    /// When its outcome was known; [`NEVER`] unless it was answered, because it can take effect later.
    pub(crate) ended: u64,
    pub(crate) outcome: CallOutcome,
    pub(crate) status: u16,
}

impl Span {
    pub(crate) const fn new(line: u32, sent: u64) -> Self {
        Self { line, outcome_line: NONE, sent, ended: NEVER, outcome: CallOutcome::Unknown, status: 0 }
    }

    pub(crate) fn is_ok(&self) -> bool {
        self.outcome == CallOutcome::Ok
    }

    /// Whether the call had an effect or may have had one: it was not refused.
    pub(crate) fn may_count(&self) -> bool {
        self.outcome != CallOutcome::Refused
    }

    pub(crate) fn lines(&self) -> Vec<u32> {
        [self.line, self.outcome_line].into_iter().filter(|&line| line != NONE).collect()
    }
}

/// The content of a job, as fingerprints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Content {
    pub(crate) body: u64,
    /// The fingerprint of the URL and the headers.
    pub(crate) target: u64,
}

/// A record that belongs to a job and has a time.
pub(crate) trait JobRecord {
    fn place(&self) -> (u32, u64);
}

macro_rules! job_record {
    ($record:ty, $time:expr) => {
        impl JobRecord for $record {
            fn place(&self) -> (u32, u64) {
                let time: fn(&Self) -> u64 = $time;
                (self.job, time(self))
            }
        }
    };
}

#[derive(Clone, Debug)]
pub(crate) struct SubmitRecord {
    pub(crate) job: u32,
    pub(crate) span: Span,
    pub(crate) content: Content,
    /// The asked due time in ms, if it is absolute.
    pub(crate) at: Option<u64>,
    /// The asked delay in ms.
    pub(crate) delay: u64,
    /// The due time by the answer, in ms.
    pub(crate) due: Option<u64>,
    pub(crate) policy: u32,
    /// The deadline of an attempt, in µs.
    pub(crate) timeout: u64,
    pub(crate) key: u32,
    pub(crate) store: u8,
    pub(crate) is_pull: bool,
    pub(crate) replaces: bool,
    /// Whether the server chose the id.
    pub(crate) is_anonymous: bool,
}

impl SubmitRecord {
    /// Whether two submits ask for the same content, due time, delay, retry policy and timeout.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let fields = |submit: &Self| (submit.content, submit.at, submit.delay, submit.policy, submit.timeout);
        fields(self) == fields(other)
    }
}

job_record!(SubmitRecord, |submit| submit.span.sent);

/// What a call asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallRequest {
    Cancel,
    Move(MoveKind),
}

/// A cancel or a move.
#[derive(Clone, Debug)]
pub(crate) struct CallRecord {
    pub(crate) job: u32,
    pub(crate) span: Span,
    pub(crate) asked: CallRequest,
    pub(crate) at: Option<u64>,
    pub(crate) delay: u64,
    pub(crate) state: Option<JobState>,
    pub(crate) due: Option<u64>,
    pub(crate) is_in_flight_unknown: bool,
}

job_record!(CallRecord, |call| call.span.sent);

/// A delivery at a receiver.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    pub(crate) job: u32,
    pub(crate) line: u32,
    /// The line of its end, or [`NONE`].
    pub(crate) end_line: u32,
    pub(crate) attempt: u32,
    pub(crate) start: u64,
    /// When it ended; [`NEVER`] if that is not known.
    pub(crate) end: u64,
    pub(crate) due: Option<u64>,
    pub(crate) content: Content,
    pub(crate) webhook: Option<u64>,
    pub(crate) stamp: Option<u64>,
    pub(crate) retry_after: u64,
    pub(crate) signed: Option<bool>,
    pub(crate) status: u16,
    pub(crate) is_cut: bool,
    pub(crate) is_unexpected: bool,
}

job_record!(Delivery, |delivery| delivery.start);

impl Delivery {
    pub(crate) fn lines(&self) -> Vec<u32> {
        [self.line, self.end_line].into_iter().filter(|&line| line != NONE).collect()
    }
}

/// A lease that a consumer was given.
#[derive(Clone, Debug)]
pub(crate) struct LeaseRecord {
    pub(crate) job: u32,
    pub(crate) line: u32,
    /// The number of the reserve call.
    pub(crate) call: u64,
    pub(crate) token: u32,
    pub(crate) attempt: u32,
    /// When the consumer asked for jobs.
    pub(crate) asked: u64,
    /// When the consumer knew of it.
    pub(crate) granted: u64,
    pub(crate) deadline: u64,
    pub(crate) body: u64,
}

job_record!(LeaseRecord, |lease| lease.granted);

/// What a consumer did with a lease.
#[derive(Clone, Debug)]
pub(crate) struct SettleRecord {
    pub(crate) job: u32,
    pub(crate) span: Span,
    pub(crate) token: u32,
    pub(crate) kind: SettleKind,
    pub(crate) deadline: u64,
}

job_record!(SettleRecord, |settle| settle.span.sent);

/// A state that a job was seen in.
#[derive(Clone, Debug)]
pub(crate) struct StateRecord {
    pub(crate) job: u32,
    pub(crate) line: u32,
    pub(crate) asked: u64,
    pub(crate) known: u64,
    pub(crate) state: JobState,
    pub(crate) places: u32,
}

job_record!(StateRecord, |state| state.known);

/// A transition of the log.
#[derive(Clone, Debug)]
pub(crate) struct TransitionRecord {
    pub(crate) job: u32,
    pub(crate) line: u32,
    pub(crate) time: u64,
    pub(crate) transition: TransitionName,
    pub(crate) from: JobState,
    pub(crate) to: JobState,
}

job_record!(TransitionRecord, |transition| transition.time);

/// A job at the end.
#[derive(Clone, Debug)]
pub(crate) struct FinalRecord {
    pub(crate) job: u32,
    pub(crate) line: u32,
    pub(crate) time: u64,
    pub(crate) state: JobState,
    pub(crate) due: Option<u64>,
    pub(crate) attempts: u32,
    pub(crate) failures: u32,
    /// The number of the reason among the texts.
    pub(crate) reason: u32,
}

job_record!(FinalRecord, |record| record.time);
