//! Events: what happens to jobs while somebody watches. The transitions themselves emit them, so the events
//! of one job come in the order in which they happened. Nothing is stored: a listener that is not
//! connected misses them, and no transition waits for a listener.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::clock::Timestamp;
use crate::job::{JobKey, Tags};

/// Something that happened to a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, by the store's clock.
    pub at: Timestamp,
    pub key: JobKey,
    pub tags: Tags,
    pub kind: EventKind,
}

/// What can happen to a job, with its details.
#[derive(Clone, Debug, PartialEq, Eq, strum::EnumDiscriminants)]
#[strum_discriminants(
    doc = "The name of a kind of event.",
    name(EventName),
    derive(strum::Display, strum::EnumString, strum::IntoStaticStr, strum::VariantNames),
    strum(serialize_all = "lowercase")
)]
pub enum EventKind {
    /// The job was accepted. If it is due already, it is ready at once.
    Submitted {
        due: Timestamp,
    },
    /// The job became ready, because it was due or by a call.
    Promoted,
    Attempt(AttemptEnded),
    /// The job was delivered and has ended.
    Done,
    /// The job failed for good.
    Dead {
        reason: Box<str>,
    },
    /// The job was cancelled and has ended.
    Cancelled,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptEnded {
    /// Its number, from 1.
    pub number: u32,
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
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::Display,
    strum::VariantArray,
    ToSchema
)]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "lowercase")]
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
