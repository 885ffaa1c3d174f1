//! Answers about jobs: a job, batches of submits, and cancels. Also the answer with the statistics of the store. Times
//! are RFC 3339 with milliseconds, UTC; durations are numbers with the unit in the name.

use ringback_core::clock::millis;
use ringback_core::job::Job;
use ringback_core::outcome::LastAttempt;
use ringback_core::store_types::{JobPauses, StateCounts};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::archive::ArchiveResponse;
use super::problem::Problem;
use super::waiting::{HeldBy, WaitDetails};

/// A job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobResponse {
    /// Its topic.
    pub topic: String,
    /// Its id.
    pub id: String,
    /// `delayed`, `ready`, `reserved`, `done`, `dead` or `cancelled`.
    #[schema(value_type = ringback_core::state::State)]
    pub state: String,
    /// When it is, or was last, due.
    #[schema(format = DateTime)]
    pub due_at: String,
    /// When it was accepted.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// How often a notifier or consumer reserved it.
    pub attempts: u32,
    /// How many of the attempts failed.
    pub failures: u32,
    /// The last failed attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<LastAttemptDetails>,
    /// Why it is dead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Its tags; absent if it has none, and once it is done or cancelled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// In the answer to a look at one job that is delayed or ready: the pauses that hold it, `topic`, `destination` or
    /// both. Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paused_by: Vec<String>,
    /// In the answer to a look at one job: what it waits for. Absent if it does not wait, or only for its time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Box<WaitDetails>>,
    /// What the request may not have meant: a `delay` of more than a day without a unit, which is in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A failed attempt: `status` if there was a response, `error` if there was none or its body was not the
/// expected one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LastAttemptDetails {
    /// When it was sent.
    #[schema(format = DateTime)]
    pub at: String,
    /// The response's status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The class of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

impl From<LastAttempt> for LastAttemptDetails {
    fn from(last: LastAttempt) -> Self {
        Self {
            at: last.at.to_string(),
            status: last.status,
            error: last.error,
            duration_ms: millis(last.duration),
        }
    }
}

impl From<Job> for JobResponse {
    fn from(job: Job) -> Self {
        Self {
            topic: job.key.topic.to_string(),
            id: job.key.id.to_string(),
            state: job.state.to_string(),
            due_at: job.due.to_string(),
            created_at: job.created.to_string(),
            attempts: job.attempts,
            failures: job.failures,
            last: job.last.map(LastAttemptDetails::from),
            reason: job.reason,
            tags: job.tags.to_vec(),
            paused_by: Vec::new(),
            waiting: None,
            note: None,
        }
    }
}

impl JobResponse {
    /// The job with the pauses that hold it, and what it waits for.
    #[must_use]
    pub fn with_wait(
        self,
        JobPauses { topic, destination }: JobPauses,
        waiting: Option<WaitDetails>,
    ) -> Self {
        let paused_by = HeldBy::of(topic, destination).iter().map(ToString::to_string).collect();
        Self { paused_by, waiting: waiting.map(Box::new), ..self }
    }
}

/// The answer to a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BatchResponse {
    /// How many items were accepted, new and repeated ones.
    pub accepted: usize,
    /// How many items were refused.
    pub refused: usize,
    /// One result per item, in order.
    pub results: Vec<BatchResult>,
}

/// The result of one item of a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BatchResult {
    /// The status as if it had been submitted alone: 201, 200, or that of the problem.
    pub status: u16,
    /// The job, if it was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobResponse>,
    /// The problem, if it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
}

impl From<Vec<BatchResult>> for BatchResponse {
    fn from(results: Vec<BatchResult>) -> Self {
        let accepted = results.iter().filter(|r| r.job.is_some()).count();
        Self { accepted, refused: results.len() - accepted, results }
    }
}

/// The answer to a cancel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CancelResponse {
    /// The job's topic.
    pub topic: String,
    /// The job's id.
    pub id: String,
    /// `cancelled`, or `reserved` while it is being delivered.
    #[schema(value_type = ringback_core::state::State)]
    pub state: String,
    /// `true` while a delivery is under way; `"unknown"` if a delivery began and was never settled, so that
    /// it may still be under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<InFlight>,
}

/// Whether a delivery may still be under way.
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
pub struct StatsResponse {
    /// Jobs by state, and those that are in none any more. Done, cancelled and purged jobs are counted since the
    /// installation began.
    pub states: StateCounts,
    /// How many topics had a job or are paused; on Redis at most the 10,000 latest of each shard count.
    pub topics: u64,
    /// Lateness of deliveries over the last five minutes.
    pub lateness_ms: LatenessSummary,
    /// Tombstones of ended jobs.
    pub tombstones: TombstoneCounts,
    /// Notices that are not published yet.
    pub outbox: OutboxCounts,
    /// The ended jobs that wait for the archive; absent if there never was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<ArchiveResponse>,
    /// Where jobs are kept.
    pub store: StoreDetails,
}

/// Tombstones of ended jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TombstoneCounts {
    /// How many were evicted before their retention ended, because there was no room.
    pub tombstones_evicted_early: u64,
}

/// Notices that are not published yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutboxCounts {
    /// Dead letters, whether or not they need a notice, and successes with an `on_done`, that a carrier has not handled
    /// yet. 0 at rest.
    pub deaths: u64,
}

/// Lateness from due to sent, in milliseconds; null if nothing was sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LatenessSummary {
    /// The median.
    pub p50: Option<f64>,
    /// The 99th percentile.
    pub p99: Option<f64>,
    /// The maximum.
    pub max: Option<f64>,
}

/// Where jobs are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StoreDetails {
    /// `redis`, `redis-sentinel`, `redis-cluster` or `embedded`.
    pub kind: String,
    /// How durable it is: `replicated`, `disk`, `everysec`, `memory` or `unknown`.
    pub profile: String,
    /// The version of the layout in which this version keeps jobs. Redis and the embedded store have layouts of
    /// their own.
    pub layout: u64,
    /// How far its time is ahead of the clock of the API, in milliseconds, if that is more than a minute; negative if
    /// it is behind. For an embedded store how far its last time was, while `ringback check --accept-clock` is awaited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_ahead_ms: Option<i64>,
}
