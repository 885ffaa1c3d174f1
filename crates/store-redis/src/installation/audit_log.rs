//! The audit log: appends entries, and reads it in pages. The script removes old entries beyond its limit.

use ringback_core::store_types::{
    AuditLogId, AuditLogOwner, AuditLogRow, MAX_AUDIT_LOG_WEIGHT, MIN_AUDIT_LOG_WEIGHT, StoreError,
};

use crate::keys::KeySpace;
use crate::redis_store::RedisStore;
use crate::script;

/// The length of an entry's id in bytes; the text follows.
const ID_BYTES: usize = 26;

const UNREADABLE: StoreError = StoreError::Unreadable("an entry of the audit log");

impl RedisStore {
    pub async fn append_audit_log(&self, rows: &[AuditLogRow]) -> Result<(), StoreError> {
        let parts =
            |row: &AuditLogRow| [row.owner.as_str(), row.id.as_str(), &row.written].map(str::to_owned);
        let rows: Vec<_> = rows.iter().flat_map(parts).collect();
        let args = (MAX_AUDIT_LOG_WEIGHT, MIN_AUDIT_LOG_WEIGHT, rows);
        self.call(&script::APPEND_AUDIT_LOG, KeySpace::Installation)
            .confirmed()
            .arg(args)
            .run::<u64>()
            .await
            .map(drop)
    }

    pub async fn audit_log(
        &self,
        owner: Option<&AuditLogOwner>,
        before: Option<&AuditLogId>,
        limit: usize,
    ) -> Result<Vec<AuditLogRow>, StoreError> {
        let (of, is_all) = (owner.map_or("", AuditLogOwner::as_str), u8::from(owner.is_none()));
        let args = (of, is_all, before.map_or("", AuditLogId::as_str), limit);
        let found: Vec<(String, String)> =
            self.call(&script::READ_AUDIT_LOG, KeySpace::Installation).arg(args).run().await?;
        found.iter().map(|(owner, entry)| row(owner, entry)).collect()
    }
}

fn row(owner: &str, entry: &str) -> Result<AuditLogRow, StoreError> {
    let (id, written) = entry.split_at_checked(ID_BYTES).ok_or(UNREADABLE)?;
    let owner = AuditLogOwner::from_stored(owner).ok_or(UNREADABLE)?;
    Ok(AuditLogRow { id: id.parse().map_err(|_| UNREADABLE)?, owner, written: written.into() })
}
