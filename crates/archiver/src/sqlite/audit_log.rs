//! Writes entries of the audit log to SQLite. Its parent removes old ones.

use ringback_archive::{AuditEntryRow, WriteResult};
use ringback_core::clock::Timestamp;
use rusqlite::{Transaction, params};

use super::{is_of_the_row, ms};

const ENTRY: &str = "insert into ringback_audit_log (id, at, tenant, who, address, operation, target, before, after, count, \
    outcome, trace_id, archived_at) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13) on conflict do nothing";

/// Writes entries, and counts those that were not there before. An entry whose content the database refuses is logged,
/// counted as refused, and left out.
pub(super) fn insert(
    txn: &Transaction<'_>,
    rows: &[AuditEntryRow],
    now: Timestamp,
) -> rusqlite::Result<WriteResult> {
    let (mut statement, mut written) = (txn.prepare(ENTRY)?, WriteResult::default());
    for row in rows {
        let AuditEntryRow { id, at, tenant, who, address, operation, target, .. } = row;
        let AuditEntryRow { before, after, count, outcome, trace_id, .. } = row;
        let new = statement.execute(params![
            id,
            at,
            tenant,
            who,
            address,
            operation,
            target,
            before,
            after,
            count,
            outcome,
            trace_id,
            ms(now)
        ]);
        match new {
            Ok(new) => written.new += new as u64,
            Err(error) if is_of_the_row(&error) => {
                tracing::error!(audit.id = id, %error, "an entry of the audit log is not archived");
                written.refused += 1;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(written)
}
