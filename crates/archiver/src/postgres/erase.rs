//! Erasures in PostgreSQL: marks that keep ended jobs out, and the removal of those that are there.
//!
//! A batch of ended jobs holds a lock, which it shares with other batches, from before it reads the marks until its
//! commit. An erasure adds its marks under the exclusive lock. So either a batch has read the marks, or its rows are
//! committed before the erasure searches for rows.

use std::collections::HashMap;

use ringback_archive::EndedJobRow;
use ringback_archive::erasure::{Erased, Erasure, KEEP_MARKS, marks_of};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Transaction};

use super::Failed;
use super::schema;

/// The number of the advisory lock: that of the schema and one.
const LOCK: i64 = schema::LOCK + 1;
/// How many ended jobs one statement removes.
const REMOVED: i64 = 1_000;

/// The rows that no erasure covers. Takes the shared lock until the end of the transaction.
pub(super) async fn kept<'a>(
    txn: &Transaction<'_>,
    rows: &'a [EndedJobRow],
) -> Result<Vec<&'a EndedJobRow>, tokio_postgres::Error> {
    txn.execute("select pg_advisory_xact_lock_shared($1)", &[&LOCK]).await?;
    let all = rows.iter().collect();
    if txn.query("select 1 from ringback_erasures limit 1", &[]).await?.is_empty() {
        return Ok(all);
    }
    let marks: Vec<Vec<_>> = rows.iter().map(marks_of).collect();
    let wanted: Vec<&[u8]> = marks.iter().flatten().map(|mark| &mark[..]).collect();
    let found = txn
        .query(
            "select mark, (extract(epoch from erased_at) * 1000)::bigint from ringback_erasures where mark = any($1)",
            &[&wanted],
        )
        .await?;
    let erased: HashMap<Vec<u8>, i64> = found.iter().map(|row| (row.get(0), row.get(1))).collect();
    let is_erased = |(row, marks): &(&EndedJobRow, Vec<_>)| {
        marks.iter().any(|mark: &[u8; 32]| erased.get(&mark[..]).is_some_and(|at| row.finished_at <= *at))
    };
    Ok(rows.iter().zip(marks).filter(|end| !is_erased(end)).map(|(row, _)| row).collect())
}

/// Adds the marks of an erasure, and then removes up to 1,000 of its ended jobs with their bodies. Returns how many it
/// found; 0 if none is left.
///
/// Rows are locked in the order of their key, so that erasures with common rows wait for each other. The number of rows
/// found is returned, not of those removed, so that an erasure that has waited for another is called again.
pub(super) async fn erase(client: &mut Client, erasure: &Erasure) -> Result<u64, Failed> {
    let marks = erasure.marks();
    let marks: Vec<&[u8]> = marks.iter().map(|mark| &mark[..]).collect();
    let txn = client.transaction().await?;
    txn.execute("select pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    txn.execute(
        "insert into ringback_erasures (mark, erased_at) \
        select mark, 'epoch'::timestamptz + $2::bigint * interval '1 millisecond' from unnest($1::bytea[]) as row (mark) \
        on conflict (mark) do update set erased_at = greatest(ringback_erasures.erased_at, excluded.erased_at)",
        &[&marks, &erasure.at],
    )
    .await?;
    txn.commit().await?;
    let (condition, text) = match &erasure.what {
        Erased::Id(id) => ("id = $2", id),
        Erased::Tag(tag) => ("tags @> array[$2]::text[]", tag),
    };
    let keys = ["tenant", "topic", "id", "generation", "attempts", "state", "finished_at"];
    let same = |table: &str| keys.map(|key| format!("{table}.{key} = gone.{key}")).join(" and ");
    let sql = format!(
        "with found as materialized (select {keys} from ringback_ended_jobs where tenant = $1 and {condition} \
        and ($3::text[] = '{{}}' or topic = any($3)) \
        and finished_at <= 'epoch'::timestamptz + $4::bigint * interval '1 millisecond' limit {REMOVED}), \
        gone as materialized (select {of_ends} from ringback_ended_jobs ended join found using ({keys}) order by {of_ends} for update of ended), \
        bodies as (delete from ringback_bodies using gone where {of_body}), \
        ends as (delete from ringback_ended_jobs using gone where {of_end}) \
        select count(*) from found",
        keys = keys.join(", "),
        of_ends = keys.map(|key| format!("ended.{key}")).join(", "),
        of_body = same("ringback_bodies"),
        of_end = same("ringback_ended_jobs"),
    );
    let arguments: [&(dyn ToSql + Sync); 4] = [&erasure.tenant, text, &erasure.topics, &erasure.at];
    let count: i64 = client.query_one(&sql, &arguments).await?.get(0);
    Ok(count.unsigned_abs())
}

/// Removes marks that are older than [`KEEP_MARKS`] at `now`, in ms.
pub(super) async fn forget_before(client: &Client, now: i64) -> Result<(), tokio_postgres::Error> {
    let before = now.saturating_sub(KEEP_MARKS);
    let sql = "delete from ringback_erasures where erased_at < 'epoch'::timestamptz + $1::bigint * interval '1 millisecond'";
    client.execute(sql, &[&before]).await.map(|_| ())
}
