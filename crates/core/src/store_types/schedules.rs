//! Schedules in the store: the row of each, and the arguments and results of the calls that change and find them. A
//! store does not read the packed schedule: it knows the version and the next time of each row, and compares versions.
//!
//! Each change names the version that it has read, and is refused if the schedule has another one by then. The jobs of
//! a firing are submitted in the step that moves their schedule on, so no time fires twice, whoever works on it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::job::{JobKey, Locator, NewJob, Topic};
use crate::schedule::{Overlap, Progress, ScheduleKey, ScheduleState, UnreadableSchedule};

use super::submit_results::Limit;

/// The most schedules that one call reads or changes.
pub const MAX_DUE_SCHEDULES: usize = 100;
/// About how many bytes of schedules one call reads.
pub const MAX_SCHEDULE_BYTES: usize = 1024 * 1024;

/// A schedule as a store keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleRow {
    pub key: ScheduleKey,
    /// The topic of its jobs, which chooses its shard.
    pub topic: Topic,
    /// Grows with each change.
    pub version: u64,
    /// When it fires next; `None` if it does not.
    pub next: Option<Timestamp>,
    /// The job whose end its next firing waits for.
    pub former: Option<Locator>,
    /// The packed [`ScheduleState`].
    pub packed: Vec<u8>,
}

impl ScheduleRow {
    pub fn new(key: ScheduleKey, version: u64, state: &ScheduleState) -> Self {
        let ScheduleState { schedule, progress: Progress { next, last, .. } } = state;
        let topic = schedule.job.topic.clone();
        let former = last.as_ref().filter(|_| schedule.overlap == Overlap::Skip).map(|last| {
            let key = JobKey { topic: topic.clone(), id: last.id.clone() };
            key.locator()
        });
        Self { key, topic, version, next: *next, former, packed: state.pack() }
    }

    pub fn shard_key(&self) -> JobKey {
        self.key.in_topic(&self.topic)
    }

    /// Unpacks the schedule with its progress.
    ///
    /// # Errors
    /// If the row is damaged.
    pub fn state(&self) -> Result<ScheduleState, UnreadableSchedule> {
        ScheduleState::unpack(&self.packed)
    }
}

#[derive(Clone, Debug)]
pub struct ScheduleChange {
    /// The version that it must have; `None` if there must be none of this key.
    pub expected: Option<u64>,
    pub row: ScheduleRow,
    /// The jobs to submit with the change, all in one lane.
    pub jobs: Vec<NewJob>,
}

/// The result of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleChanged {
    /// It is changed, and its jobs are submitted.
    Changed,
    /// It has another version. Nothing changed.
    Outdated,
    /// A shard or a tenant has no room for its jobs. Nothing changed.
    Full(Limit),
}

/// The result of adding a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleAdded {
    Added,
    /// There is one with this key.
    Exists,
    /// There is one with this key for another topic.
    OtherTopic(Topic),
    /// There are as many schedules as there may be.
    TooMany,
}

/// The schedules of a shard whose time has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueSchedules {
    /// The first of them. Those after them may be due too.
    pub due: Vec<DueSchedule>,
    /// The time of the store.
    pub now: Timestamp,
    /// After how long the first that is not due yet is due. Only known if none is due.
    pub next: Option<Duration>,
}

/// A schedule whose time has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueSchedule {
    pub row: ScheduleRow,
    /// Whether the job that it waits for has not ended.
    pub is_overlapped: bool,
}
