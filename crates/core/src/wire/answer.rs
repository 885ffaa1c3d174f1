//! The shapes of answers. Times are RFC 3339 with milliseconds, UTC; durations are
//! numbers with the unit in the name.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Problem;
use crate::job::Job;
use crate::outcome::LastAttempt;
use crate::state::State;

/// A job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobAnswer {
    /// Its topic.
    pub topic: String,
    /// Its id.
    pub id: String,
    /// `delayed`, `ready`, `reserved`, `done`, `dead` or `cancelled`.
    pub state: String,
    /// When it is, or was last, due.
    pub due_at: String,
    /// When it was accepted.
    pub created_at: String,
    /// How often it was handed to a notifier or consumer.
    pub attempts: u32,
    /// How many of the attempts failed.
    pub failures: u32,
    /// The last failed attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<LastAnswer>,
    /// Why it is dead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A failed attempt: `status` where there was an answer, `error` where there was none or its body
/// was not the one expected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LastAnswer {
    /// When it was sent.
    pub at: String,
    /// The answer's status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The class of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

impl From<LastAttempt> for LastAnswer {
    fn from(last: LastAttempt) -> Self {
        Self {
            at: last.at.to_string(),
            status: last.status,
            error: last.error,
            duration_ms: u64::try_from(last.duration.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

impl From<Job> for JobAnswer {
    fn from(job: Job) -> Self {
        Self {
            topic: job.key.topic.to_string(),
            id: job.key.id.to_string(),
            state: job.state.to_string(),
            due_at: job.due.to_string(),
            created_at: job.created.to_string(),
            attempts: job.attempts,
            failures: job.failures,
            last: job.last.map(LastAnswer::from),
            reason: job.reason,
        }
    }
}

/// The answer to a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BatchAnswer {
    /// How many items were accepted: new ones and repeated ones.
    pub accepted: usize,
    /// How many were not.
    pub refused: usize,
    /// One result per item, in order.
    pub results: Vec<BatchResult>,
}

/// What became of one item of a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BatchResult {
    /// As if it had been submitted alone: 201, 200, or that of the problem.
    pub status: u16,
    /// The job, where it was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobAnswer>,
    /// What was wrong, where it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
}

impl From<Vec<BatchResult>> for BatchAnswer {
    fn from(results: Vec<BatchResult>) -> Self {
        let accepted = results.iter().filter(|r| r.job.is_some()).count();
        Self { accepted, refused: results.len() - accepted, results }
    }
}

/// The answer to a cancel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CancelAnswer {
    /// The job's topic.
    pub topic: String,
    /// The job's id.
    pub id: String,
    /// `cancelled`, or `reserved` while it is being handed over.
    pub state: String,
    /// `true` while a hand-over is under way; `"unknown"` where one was begun and never
    /// settled, so that it may still be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<InFlight>,
}

/// Whether a hand-over may still be under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum InFlight {
    /// `true`.
    Yes(bool),
    /// `"unknown"`.
    Unknown(String),
}

/// The answer to GET /v1/stats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StatsAnswer {
    /// Jobs per state. The end states count all since the installation began.
    pub states: StatesAnswer,
    /// How many topics had a job or are paused; on Redis at most the 10,000 latest of each shard count.
    pub topics: u64,
    /// How late hand-overs were over the last five minutes.
    pub lateness_ms: LatenessAnswer,
    /// What is remembered of ended jobs.
    pub tombstones: TombstonesAnswer,
    /// What is still to be told.
    #[serde(default)]
    pub outbox: OutboxAnswer,
    /// Where jobs are kept.
    pub store: StoreAnswer,
}

/// What is remembered of ended jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TombstonesAnswer {
    /// How many were forgotten before their time, for lack of room.
    pub forgotten_early: u64,
}

/// What is still to be told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutboxAnswer {
    /// Deaths that a carrier has still to look at: whether somebody is to be told, and then to submit a notice.
    /// At rest 0.
    pub deaths: u64,
}

/// Jobs per state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StatesAnswer {
    /// Waiting for their due time.
    pub delayed: u64,
    /// Due, waiting to be handed over.
    pub ready: u64,
    /// Being handed over.
    pub reserved: u64,
    /// Handed over.
    pub done: u64,
    /// Given up and kept.
    pub dead: u64,
    /// Cancelled.
    pub cancelled: u64,
    /// Dead and then removed.
    pub purged: u64,
}

impl StatesAnswer {
    /// The count of a state.
    pub fn of(&mut self, state: State) -> &mut u64 {
        match state {
            State::Delayed => &mut self.delayed,
            State::Ready => &mut self.ready,
            State::Reserved => &mut self.reserved,
            State::Done => &mut self.done,
            State::Dead => &mut self.dead,
            State::Cancelled => &mut self.cancelled,
        }
    }
}

/// Lateness, from due to sent, in milliseconds; null where nothing was sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LatenessAnswer {
    /// The median.
    pub p50: Option<f64>,
    /// 99 of 100 were no later.
    pub p99: Option<f64>,
    /// The latest.
    pub max: Option<f64>,
}

/// Where jobs are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StoreAnswer {
    /// `redis`, `redis-cluster` or `embedded`.
    pub kind: String,
    /// How safely: `disk`, `everysec`, `memory` or `unknown`.
    pub profile: String,
}
