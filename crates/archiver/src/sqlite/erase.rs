//! Erasures in SQLite: marks that keep ended jobs out, and the removal of those that are there. There is one writer at
//! a time, so either a batch has read the marks, or its rows are there when the erasure searches for rows.

use ringback_archive::EndedJobRow;
use ringback_archive::erasure::{Erased, Erasure, KEEP_MARKS, marks_of};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, Transaction, params, params_from_iter};

use super::{KEY, begin};

/// How many ended jobs one transaction removes.
const REMOVED: i64 = 1_000;

/// The rows that no erasure covers.
pub(super) fn kept<'a>(
    txn: &Transaction<'_>,
    rows: &'a [EndedJobRow],
) -> rusqlite::Result<Vec<&'a EndedJobRow>> {
    let any: Option<i64> =
        txn.query_row("select 1 from ringback_erasures limit 1", [], |row| row.get(0)).optional()?;
    if any.is_none() {
        return Ok(rows.iter().collect());
    }
    let mut find = txn.prepare("select erased_at from ringback_erasures where mark = ?1")?;
    let mut kept = Vec::with_capacity(rows.len());
    for row in rows {
        let mut is_erased = false;
        for mark in marks_of(row) {
            let at: Option<i64> = find.query_row(params![mark], |row| row.get(0)).optional()?;
            is_erased |= at.is_some_and(|at| row.finished_at <= at);
        }
        if !is_erased {
            kept.push(row);
        }
    }
    Ok(kept)
}

/// Adds the marks of an erasure, and removes up to 1,000 of its ended jobs with their bodies and tags. Returns how many
/// it found; 0 if none is left. Then it also tries to empty the write-ahead log, which has former content.
pub(super) fn erase(connection: &mut Option<Connection>, erasure: &Erasure) -> rusqlite::Result<u64> {
    let txn = begin(connection)?;
    for mark in erasure.marks() {
        txn.execute(
            "insert into ringback_erasures (mark, erased_at) values (?1, ?2) \
            on conflict (mark) do update set erased_at = max(erased_at, excluded.erased_at)",
            params![mark, erasure.at],
        )?;
    }
    // The pluses keep SQLite, which has no statistics, from the indexes by tenant and time: there is one by id.
    let (table, condition, text) = match &erasure.what {
        Erased::Id(id) => ("ringback_ended_jobs", "+tenant = ?1 and id = ?2", id),
        Erased::Tag(tag) => ("ringback_tags", "tenant = ?1 and tag = ?2", tag),
    };
    let topics: Vec<_> = (4..).take(erasure.topics.len()).map(|number| format!("?{number}")).collect();
    let of_topics =
        if topics.is_empty() { String::new() } else { format!(" and +topic in ({})", topics.join(", ")) };
    txn.execute_batch("create temp table if not exists gone (tenant, topic, id, generation, attempts, state, finished_at); delete from gone")?;
    let sql = format!(
        "insert into gone select {KEY} from {table} where {condition} and finished_at <= ?3{of_topics} limit {REMOVED}"
    );
    let (tenant, text) = (Value::from(erasure.tenant.clone()), Value::from(text.clone()));
    let topics = erasure.topics.iter().cloned().map(Value::from);
    let arguments = [tenant, text, Value::from(erasure.at)].into_iter().chain(topics);
    // What is found counts, and not what is removed: a tag may be left of an ended job that its retention has removed.
    let found = txn.execute(&sql, params_from_iter(arguments))?;
    // The tags go first, by those of the ended jobs: their key begins with the tag.
    txn.execute(
        &format!(
            "delete from ringback_tags where (tenant, tag, finished_at, topic, id, generation, attempts, state) in (\
            select gone.tenant, value, gone.finished_at, gone.topic, gone.id, gone.generation, gone.attempts, gone.state \
            from gone join ringback_ended_jobs as ended using ({KEY}), json_each(ended.tags))"
        ),
        [],
    )?;
    if let Erased::Tag(tag) = &erasure.what {
        let sql = format!("delete from ringback_tags where tag = ?1 and ({KEY}) in (select {KEY} from gone)");
        txn.execute(&sql, params![tag])?;
    }
    for table in ["ringback_bodies", "ringback_ended_jobs"] {
        txn.execute(&format!("delete from {table} where ({KEY}) in (select {KEY} from gone)"), [])?;
    }
    txn.commit()?;
    if found == 0
        && let Some(connection) = connection
    {
        // The write-ahead log has the former pages until it is emptied. If somebody reads, a later erasure does it.
        connection.query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(())).ok();
    }
    Ok(found as u64)
}

/// Removes marks that are older than [`KEEP_MARKS`] at `now`, in ms.
pub(super) fn forget_before(connection: &mut Option<Connection>, now: i64) -> rusqlite::Result<()> {
    let txn = begin(connection)?;
    txn.execute(
        "delete from ringback_erasures where erased_at < ?1",
        params![now.saturating_sub(KEEP_MARKS)],
    )?;
    txn.commit()
}
