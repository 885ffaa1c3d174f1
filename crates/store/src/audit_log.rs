//! The audit log: adding and reading entries.

use ringback_core::store_types::{AuditLogId, AuditLogOwner, AuditLogRow, MAX_AUDIT_LOG_ROWS, StoreError};

use crate::backend::backend;
use crate::store::Store;

impl Store {
    /// Adds entries; those after the first [`MAX_AUDIT_LOG_ROWS`] are ignored. While all entries together weigh too
    /// much, removes the oldest one of the owner whose entries weigh most.
    pub async fn append_audit_log(&self, rows: &[AuditLogRow]) -> Result<(), StoreError> {
        let rows = &rows[..rows.len().min(MAX_AUDIT_LOG_ROWS)];
        backend!(self.append_audit_log(rows).await)
    }

    /// The newest entries of an owner, or of all owners with `None`, whose ids are less than `before`. At most `limit`
    /// and [`MAX_AUDIT_LOG_ROWS`]; fewer only if there are no more.
    pub async fn audit_log(
        &self,
        owner: Option<&AuditLogOwner>,
        before: Option<&AuditLogId>,
        limit: usize,
    ) -> Result<Vec<AuditLogRow>, StoreError> {
        let limit = limit.min(MAX_AUDIT_LOG_ROWS);
        backend!(self.audit_log(owner, before, limit).await)
    }
}
