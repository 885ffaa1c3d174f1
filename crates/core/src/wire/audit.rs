//! Answers of the audit.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::clock::millis;
use crate::contract::{Audit, Finding};

/// The answer to GET /v1/audit and POST /v1/audit/repair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditAnswer {
    /// Whether there is no damage, or all of it is repaired.
    pub clean: bool,
    /// The first hundred findings.
    pub findings: Vec<FindingAnswer>,
    /// The number of all findings.
    pub found: u64,
    /// How many of them this call has repaired.
    pub repaired: u64,
    /// How many jobs were checked: all that have not ended.
    pub checked: u64,
    /// Index entries without a job, or of a job that has changed its state since. They do no harm, and are
    /// dropped when an edge finds them. The number is exact if nothing moved meanwhile.
    pub stale: u64,
    /// The number of shards.
    pub shards: u16,
    /// The number of shards in which no job moved meanwhile, so that the counts could be compared.
    pub compared: u16,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

/// One piece of damage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FindingAnswer {
    /// `unindexed`, `turn`, `moment`, `ledger`, `lane_count`, `topic`, `attempts`, `run`, `body`, `lane` or `unreadable`.
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

impl From<Finding> for FindingAnswer {
    fn from(finding: Finding) -> Self {
        let Finding { kind, shard, topic, id, detail, is_repaired } = finding;
        let (kind, shard) = (kind.name().to_owned(), shard.number());
        Self { kind, shard, topic, id, detail, repaired: is_repaired }
    }
}

impl AuditAnswer {
    /// The answer of an audit that took `duration`.
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
            duration_ms: millis(duration),
        }
    }
}
