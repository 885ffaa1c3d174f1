//! The audit log in PostgreSQL: adds entries, and removes those that are older than the retention.

use std::time::Duration;

use ringback_archive::AuditEntryRow;
use tokio::time::Instant;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Transaction};

use super::insert::Insert;

const ENTRIES: &str = "\
insert into ringback_audit_log (id, at, tenant, who, address, operation, target, before, after, count, outcome, trace_id) \
select id, 'epoch'::timestamptz + at * interval '1 millisecond', tenant, who, address, operation, target::jsonb, \
  before::jsonb, after::jsonb, count, outcome, trace_id \
from unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], \
  $10::bigint[], $11::text[], $12::text[]) \
  as row (id, at, tenant, who, address, operation, target, before, after, count, outcome, trace_id) \
on conflict do nothing";

/// How many entries one statement removes, and for how long statements follow each other.
const REMOVED: u64 = 5_000;
const REMOVES_FOR: Duration = Duration::from_secs(5);

impl Insert for AuditEntryRow {
    async fn insert(txn: &Transaction<'_>, rows: &[Self]) -> Result<u64, tokio_postgres::Error> {
        let texts = |of: fn(&Self) -> Option<&str>| rows.iter().map(of).collect::<Vec<_>>();
        let at: Vec<_> = rows.iter().map(|row| row.at).collect();
        let counts: Vec<_> = rows.iter().map(|row| row.count).collect();
        let [ids, tenants, who, addresses, operations] = [
            texts(|row| Some(&row.id)),
            texts(|row| row.tenant.as_deref()),
            texts(|row| Some(&row.who)),
            texts(|row| row.address.as_deref()),
            texts(|row| Some(&row.operation)),
        ];
        let [targets, before, after, outcomes, traces] = [
            texts(|row| Some(&row.target)),
            texts(|row| row.before.as_deref()),
            texts(|row| row.after.as_deref()),
            texts(|row| Some(&row.outcome)),
            texts(|row| row.trace_id.as_deref()),
        ];
        let args: [&(dyn ToSql + Sync); 12] = [
            &ids,
            &at,
            &tenants,
            &who,
            &addresses,
            &operations,
            &targets,
            &before,
            &after,
            &counts,
            &outcomes,
            &traces,
        ];
        txn.execute(ENTRIES, &args).await
    }

    fn log_refused(&self, error: &tokio_postgres::Error) {
        tracing::error!(audit.id = self.id, %error, "an entry of the audit log is not archived");
    }
}

/// Removes entries from before a time in ms, for about 5 s at most; the next call removes the rest.
pub(super) async fn remove_before(client: &Client, before: i64) -> Result<(), tokio_postgres::Error> {
    let sql = format!(
        "delete from ringback_audit_log where id = any(array(select id from ringback_audit_log \
        where at < 'epoch'::timestamptz + $1::bigint * interval '1 millisecond' limit {REMOVED}))"
    );
    let begun = Instant::now();
    while client.execute(&sql, &[&before]).await? == REMOVED && begun.elapsed() < REMOVES_FOR {}
    Ok(())
}
