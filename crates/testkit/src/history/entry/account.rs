//! What the product says of itself: states, transitions, locks, and the dump at the end.

use std::borrow::Cow;

use ringback_core::store_types::TransitionName;
use serde::{Deserialize, Serialize};

use super::{is_false, is_one, one};

/// The state of a job, or its absence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    Delayed,
    Ready,
    Reserved,
    Done,
    Dead,
    Cancelled,
    /// No such job yet, or any more.
    Nothing,
}

impl JobState {
    /// Whether a job stays in this state: done or cancelled.
    pub(crate) const fn is_terminal(self) -> bool {
        matches!(self, Self::Done | Self::Cancelled)
    }

    /// Whether a job in this state is still to be delivered: delayed, ready or reserved.
    pub(crate) const fn is_pending(self) -> bool {
        matches!(self, Self::Delayed | Self::Ready | Self::Reserved)
    }
}

/// A state that a job was seen in.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observed<'a> {
    /// When it was known.
    pub t: u64,
    pub asked: u64,
    /// `topic/id`.
    pub job: &'a str,
    pub state: JobState,
    /// In how many states the job was found at once.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub places: u32,
}

/// A transition that a process has logged.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transition<'a> {
    /// When it was logged.
    pub t: u64,
    /// `topic/id`.
    pub job: &'a str,
    pub transition: TransitionName,
    pub from: JobState,
    /// The state after it; `nothing` for a job that is gone.
    pub to: JobState,
}

/// A process took a lock, or had an effect under it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockUse<'a> {
    /// When this was known to have been done.
    pub t: u64,
    /// When it was begun.
    pub asked: u64,
    /// The lock, such as `shard-3`.
    pub lock: &'a str,
    pub token: u64,
    pub pid: u32,
    /// Whether the store refused it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub fenced: bool,
}

/// A job at the end.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Final<'a> {
    /// When it was read.
    pub t: u64,
    /// `topic/id`.
    pub job: &'a str,
    pub state: JobState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<u64>,
    pub attempts: u32,
    pub failures: u32,
    /// Why it is dead.
    #[serde(default, borrow, skip_serializing_if = "str::is_empty")]
    pub reason: Cow<'a, str>,
}

/// The answer of a check.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// When it was complete.
    pub t: u64,
    /// How many jobs it looked at.
    pub checked: u64,
    /// Its findings about jobs and indexes.
    pub findings: u64,
    /// Its findings about counts.
    pub miscounts: u64,
    /// How many keys do not begin with the product's prefix.
    pub foreign: u64,
}

/// The counts of the store.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ledger {
    /// When they were read.
    pub t: u64,
    /// All jobs that were ever accepted.
    pub accepted: u64,
    pub delayed: u64,
    pub ready: u64,
    pub reserved: u64,
    pub done: u64,
    pub dead: u64,
    pub cancelled: u64,
    pub purged: u64,
    #[serde(default)]
    pub missing: u64,
}

/// A counter of one process, by its name in the metrics and the value of its label.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metric<'a> {
    /// When it was read.
    pub t: u64,
    pub pid: u32,
    /// Its name, such as `ringback_notifier_attempts_total`.
    pub name: &'a str,
    /// The value of the label that matters, such as `complete`.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub label: &'a str,
    pub value: u64,
}

/// The end of the run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    pub t: u64,
    /// Whether the history has a final line for every job that is pending or dead.
    pub dumped: bool,
    /// Whether the run waited until nothing was due any more.
    pub drained: bool,
}
