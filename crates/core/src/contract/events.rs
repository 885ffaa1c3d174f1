//! Events: what happens to jobs while somebody watches. The edges themselves emit them, so the events
//! of one job come in the order in which they happened. Nothing is stored: a listener that is not
//! connected misses them, and no edge waits for a listener.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::job::{JobKey, Tags};

/// Something that happened to a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, by the store's clock.
    pub at: Timestamp,
    /// The job.
    pub key: JobKey,
    /// Its tags.
    pub tags: Tags,
    /// What happened.
    pub kind: EventKind,
}

/// What can happen to a job, with its details.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The job was accepted. If it is due already, it is ready at once.
    Submitted {
        /// When it is due.
        due: Timestamp,
    },
    /// The job became ready, because it was due or by a call.
    Promoted,
    /// An attempt ended.
    Attempt(AttemptEnded),
    /// The job was delivered and has ended.
    Done,
    /// The job failed for good.
    Dead {
        /// Why.
        reason: Box<str>,
    },
    /// The job was cancelled and has ended.
    Cancelled,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptEnded {
    /// Its number, from 1.
    pub number: u32,
    /// Its outcome.
    pub outcome: AttemptOutcome,
    /// When the job is due again, if it has to wait.
    pub due: Option<Timestamp>,
    /// The response's status, if there was a response and it is known.
    pub status: Option<u16>,
    /// The class of the error, or the text that a consumer gave.
    pub error: Option<Box<str>>,
    /// How long the attempt took, if it is known. For a success it is known only to consumers' jobs, and
    /// to jobs that were reserved while somebody watched.
    pub duration: Option<Duration>,
}

/// The outcome of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// The job was delivered.
    Complete,
    /// The attempt failed, and the job is retried.
    Retry,
    /// The attempt failed, and the job is dead.
    Bury,
    /// The job was not tried, or the attempt does not count.
    Release,
    /// The lease ran out without an outcome. For a pull job this counts as a failure, unless a cancel
    /// was requested.
    Lost,
}

impl AttemptOutcome {
    /// All outcomes.
    pub const ALL: [Self; 5] = [Self::Complete, Self::Retry, Self::Bury, Self::Release, Self::Lost];

    /// Its name in the API and the docs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Retry => "retry",
            Self::Bury => "bury",
            Self::Release => "release",
            Self::Lost => "lost",
        }
    }
}

/// The name of a kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventName {
    /// [`EventKind::Submitted`].
    Submitted,
    /// [`EventKind::Promoted`].
    Promoted,
    /// [`EventKind::Attempt`].
    Attempt,
    /// [`EventKind::Done`].
    Done,
    /// [`EventKind::Dead`].
    Dead,
    /// [`EventKind::Cancelled`].
    Cancelled,
}

impl EventName {
    /// All names, in the order of a job's life.
    pub const ALL: [Self; 6] =
        [Self::Submitted, Self::Promoted, Self::Attempt, Self::Done, Self::Dead, Self::Cancelled];

    /// The text in the API and the docs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Submitted => "submitted",
            Self::Promoted => "promoted",
            Self::Attempt => "attempt",
            Self::Done => "done",
            Self::Dead => "dead",
            Self::Cancelled => "cancelled",
        }
    }

    /// The kind with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl EventKind {
    /// The name of this kind.
    pub const fn name(&self) -> EventName {
        match self {
            Self::Submitted { .. } => EventName::Submitted,
            Self::Promoted => EventName::Promoted,
            Self::Attempt(_) => EventName::Attempt,
            Self::Done => EventName::Done,
            Self::Dead { .. } => EventName::Dead,
            Self::Cancelled => EventName::Cancelled,
        }
    }
}

/// An item of an event stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamItem {
    /// The subscription is new. Events before it may be missing.
    Gap,
    /// Some events were lost. The subscription goes on.
    Missed,
    /// The subscription broke. There are no events until the next gap.
    Lost,
    /// Events, in order for each job.
    Events(Vec<Event>),
}
