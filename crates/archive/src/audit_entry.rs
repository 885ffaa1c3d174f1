//! An entry of the audit log as a row of the archive.

use ringback_core::store_types::AuditLogRow;
use ringback_wire::{AuditLogEntry, AuditLogOutcome};
use serde::{Deserialize, Serialize};

use crate::ended_job_row::{clean, clean_json};

/// An entry of the audit log. Times are in milliseconds since 1970. No text has a NUL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntryRow {
    pub id: String,
    /// When the call was answered.
    pub at: i64,
    /// The tenant whose topics the call was about.
    pub tenant: Option<String>,
    pub who: String,
    /// The address that the call came from.
    pub address: Option<String>,
    pub operation: String,
    /// What was changed, as JSON.
    pub target: String,
    /// What it was before, as JSON.
    pub before: Option<String>,
    /// What it was after, as JSON.
    pub after: Option<String>,
    /// How many jobs, or ended jobs, the call has changed.
    pub count: Option<i64>,
    /// `done` or `unknown`.
    pub outcome: String,
    /// The trace that the call belongs to.
    pub trace_id: Option<String>,
}

impl AuditEntryRow {
    /// The row of an entry as it is stored.
    ///
    /// # Errors
    /// If the entry cannot be read.
    pub(crate) fn read(row: &AuditLogRow) -> serde_json::Result<Self> {
        let entry: AuditLogEntry = serde_json::from_str(&row.written)?;
        let json = |value: &serde_json::Value| clean_json(value.to_string());
        let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        Ok(Self {
            id: row.id.to_string(),
            at: number(row.id.time().as_millis()),
            tenant: entry.tenant.as_deref().map(clean),
            who: clean(&entry.who),
            address: entry.address.as_deref().map(clean),
            operation: clean(&entry.operation),
            target: clean_json(serde_json::to_string(&entry.target)?),
            before: entry.before.as_ref().map(json),
            after: entry.after.as_ref().map(json),
            count: entry.count.map(number),
            outcome: match entry.outcome {
                AuditLogOutcome::Done => "done",
                AuditLogOutcome::Unknown => "unknown",
            }
            .to_owned(),
            trace_id: entry.trace_id.as_deref().map(clean),
        })
    }
}
