//! The answers of the consistency check, and of accepting a loss or the machine's clock.

use ringback_core::clock::millis;
use ringback_core::store_types::{Check, ClockGap, Finding, Loss};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::declare::request;
use super::schema::RunId;

/// What the `run_id` of a server is.
const RUN_ID: &str = "the run_id of a loss as the check shows it: 1 to 64 hexadecimal digits in lower case";

/// The answer to GET /v1/check and POST /v1/check/repair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CheckResponse {
    /// Whether every job was judged, there is no damage, or all of it is repaired, and no loss waits to be accepted.
    pub clean: bool,
    /// The first hundred findings.
    pub findings: Vec<CheckFinding>,
    /// The number of all findings.
    pub found: u64,
    /// How many of them this call has repaired.
    pub repaired: u64,
    /// How many jobs were checked: all that have not ended.
    pub checked: u64,
    /// Index entries without a job, or of a job that has changed its state since. They do no harm, and are
    /// dropped when a transition finds them. The number is exact if nothing moved meanwhile.
    pub stale: u64,
    /// The number of shards.
    pub shards: u16,
    /// The number of shards in which no job moved meanwhile, so that the counts could be compared.
    pub compared: u16,
    /// Waiting jobs that could not be judged, because their lists moved each time they were read. Check again.
    pub unverified: u64,
    /// Accepted jobs that repairs, this one included, have found to have no record and no end, since the installation
    /// began: they will not be delivered. The check is clean beside them.
    pub missing: u64,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// A loss of accepted jobs that was noticed and has to be accepted before submits are taken again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<JobLoss>,
}

/// Accepted jobs that the store has lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobLoss {
    /// The `run_id` of the store's server as it runs without the jobs. It names the loss.
    pub run_id: String,
    /// How many jobs are lost, as far as the API processes know.
    pub jobs: u64,
}

/// The clock that an embedded store follows from now on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClockResponse {
    /// How far the store's time was ahead of the machine's clock, in milliseconds.
    pub was_ahead_ms: i64,
    /// How many jobs were accepted, tried or became due by that time, and have not ended.
    pub jobs: u64,
}

impl From<ClockGap> for ClockResponse {
    fn from(ClockGap { ahead_ms, jobs }: ClockGap) -> Self {
        Self { was_ahead_ms: ahead_ms, jobs }
    }
}

impl From<Loss> for JobLoss {
    fn from(Loss { run_id, jobs }: Loss) -> Self {
        Self { run_id, jobs }
    }
}

/// One piece of damage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CheckFinding {
    /// `unindexed`, `tag`, `turn`, `moment`, `schedule`, `ledger`, `lane_count`, `topic`, `attempts`, `run`, `body`,
    /// `lane` or `unreadable`.
    pub kind: String,
    /// The shard.
    pub shard: u16,
    /// The topic, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// The job's id, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// A description.
    pub detail: String,
    /// Whether this call has repaired it.
    pub repaired: bool,
}

impl From<Finding> for CheckFinding {
    fn from(finding: Finding) -> Self {
        let Finding { kind, shard, topic, id, detail, is_repaired } = finding;
        let (kind, shard) = (kind.to_string(), shard.number());
        Self { kind, shard, topic, id, detail, repaired: is_repaired }
    }
}

impl CheckResponse {
    /// The answer of a check that took `duration`.
    pub fn new(check: Check, duration: std::time::Duration) -> Self {
        Self {
            clean: check.is_clean(),
            found: check.total(),
            repaired: check.repaired,
            checked: check.checked,
            loss: check.loss.clone().map(JobLoss::from),
            stale: check.stale,
            shards: check.shards,
            compared: check.compared,
            unverified: check.unverified,
            missing: check.missing,
            findings: check.findings.into_iter().map(CheckFinding::from).collect(),
            duration_ms: millis(duration),
        }
    }
}

request! {
    /// The loss to accept.
    #[example {"run_id": "8b1f0e6f2d6c4a5e9d3c7b1a0f9e8d7c6b5a4f3e"}]
    pub struct AcceptLossRequest(open) {
        /// The loss, as the check shows it.
        run_id: RunId [RUN_ID], required String::new();
    }
}
