//! What an audit came to, as JSON.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::store::{Audit, Finding};

/// The answer to GET /v1/audit and POST /v1/audit/repair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditAnswer {
    /// Whether nothing is wrong; after a repair, whether nothing is left that is.
    pub clean: bool,
    /// What is wrong, or was: the first hundred.
    pub findings: Vec<FindingAnswer>,
    /// How many findings there are in all.
    pub found: u64,
    /// How many of them were put right by this call.
    pub repaired: u64,
    /// How many jobs were looked at: those that have not ended.
    pub checked: u64,
    /// Index entries that lead to nothing, or to a job that has moved on. They do no harm, and are
    /// dropped when they are met. Exact where nothing moved meanwhile.
    pub stale: u64,
    /// How many shards there are.
    pub shards: u16,
    /// In how many of them no job moved meanwhile, so that the counts could be compared with the jobs.
    pub compared: u16,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FindingAnswer {
    /// `unindexed`, `turn`, `moment`, `ledger`, `lane_count`, `topic`, `attempts`, `run`, `body`, `lane` or `unreadable`.
    pub kind: String,
    /// In which shard.
    pub shard: u16,
    /// Of which topic, where it is of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// Of which job, where it is of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// In words.
    pub detail: String,
    /// Whether this call has put it right.
    pub repaired: bool,
}

impl From<Finding> for FindingAnswer {
    fn from(finding: Finding) -> Self {
        let Finding { kind, shard, topic, id, detail, is_repaired } = finding;
        let (kind, shard) = (kind.name().to_owned(), shard.number());
        Self { kind, shard, topic, id, detail, repaired: is_repaired }
    }
}

impl AuditAnswer {
    /// What an audit came to that took so long.
    pub fn new(audit: Audit, duration: std::time::Duration) -> Self {
        Self {
            clean: audit.is_clean(),
            found: audit.total(),
            repaired: audit.repaired,
            checked: audit.checked,
            stale: audit.stale,
            shards: audit.shards,
            compared: audit.compared,
            findings: audit.findings.into_iter().map(FindingAnswer::from).collect(),
            duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        }
    }
}
