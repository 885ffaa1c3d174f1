//! The audit log: appends entries, removes the oldest of its heaviest owners beyond the limit, and reads it in pages.

use ringback_core::store_types::{AuditLogId, AuditLogOwner, AuditLogRow, MAX_AUDIT_LOG_WEIGHT, StoreError};

use crate::txn::Txn;
use crate::{ANY_SHARD, EmbeddedStore};

impl EmbeddedStore {
    pub async fn append_audit_log(&self, rows: &[AuditLogRow]) -> Result<(), StoreError> {
        let bytes = rows.iter().map(|row| row.written.len() + 128).sum();
        let rows = rows.to_vec();
        let append = move |txn: &mut Txn<'_>| {
            for row in &rows {
                txn.tables.audit_log.add(row)?;
            }
            txn.tables.audit_log.remove_beyond(MAX_AUDIT_LOG_WEIGHT)
        };
        self.call(ANY_SHARD, bytes, append).await
    }

    pub async fn audit_log(
        &self,
        owner: Option<&AuditLogOwner>,
        before: Option<&AuditLogId>,
        limit: usize,
    ) -> Result<Vec<AuditLogRow>, StoreError> {
        let (owner, before, snapshot) = (owner.cloned(), before.cloned(), self.snapshot().await?);
        self.read(snapshot, move |tables| match &owner {
            Some(owner) => tables.audit_log.newest_of(owner, before.as_ref(), limit),
            None => tables.audit_log.newest(before.as_ref(), limit),
        })
        .await
    }
}
