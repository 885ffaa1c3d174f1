//! Writes batches of rows to PostgreSQL: of ended jobs with one statement for them and one for their bodies, in one
//! transaction. A row whose content the database refuses is logged and left out, and the others are written.

use ringback_archive::{EndedJobRow, WriteResult};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Transaction};

use super::{Failed, erase};

const ENDS: &str = "\
insert into ringback_ended_jobs (tenant, topic, id, generation, attempts, state, finished_at, created_at, first_due_at, due_at, failures, \
  reason, url, host, last_at, last_status, last_error, last_duration_ms, request, attempt_log, attempts_complete, tags) \
select tenant, topic, id, generation, attempts, state, \
  'epoch'::timestamptz + finished_at * interval '1 millisecond', 'epoch'::timestamptz + generation * interval '1 millisecond', \
  'epoch'::timestamptz + first_due_at * interval '1 millisecond', 'epoch'::timestamptz + due_at * interval '1 millisecond', \
  failures, reason, url, host, 'epoch'::timestamptz + last_at * interval '1 millisecond', last_status, last_error, \
  last_duration_ms, request::jsonb, attempt_log::jsonb, attempts_complete, string_to_array(tags, ' ') \
from unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::text[], $7::bigint[], $8::bigint[], \
  $9::bigint[], $10::bigint[], $11::text[], $12::text[], $13::text[], $14::bigint[], $15::integer[], $16::text[], \
  $17::bigint[], $18::text[], $19::text[], $20::boolean[], $21::text[]) \
  as row (tenant, topic, id, generation, attempts, state, finished_at, first_due_at, due_at, failures, reason, url, host, last_at, \
  last_status, last_error, last_duration_ms, request, attempt_log, attempts_complete, tags) \
on conflict do nothing";

const BODIES: &str = "\
insert into ringback_bodies (tenant, topic, id, generation, attempts, state, finished_at, content_type, body) \
select tenant, topic, id, generation, attempts, state, 'epoch'::timestamptz + finished_at * interval '1 millisecond', content_type, \
  body \
from unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::text[], $7::bigint[], $8::text[], $9::bytea[]) \
  as row (tenant, topic, id, generation, attempts, state, finished_at, content_type, body) \
on conflict do nothing";

/// Rows of a kind.
pub(super) trait Insert: Sized + Sync {
    /// Adds rows in a transaction, and returns how many were not there before.
    fn insert(
        txn: &Transaction<'_>,
        rows: &[Self],
    ) -> impl Future<Output = Result<u64, tokio_postgres::Error>> + Send;

    /// Logs that the database refuses this row.
    fn log_refused(&self, error: &tokio_postgres::Error);
}

/// Writes rows. If the database refuses the content of one, halves the batch until that row is alone, logs it, counts
/// it as refused, and writes the others. Any other error ends the call; parts that were committed stay.
pub(super) async fn insert<R: Insert>(client: &mut Client, rows: &[R]) -> Result<WriteResult, Failed> {
    let (mut written, mut left) = (WriteResult::default(), vec![rows]);
    while let Some(part) = left.pop() {
        let txn = client.transaction().await?;
        match R::insert(&txn, part).await {
            Ok(new) => {
                txn.commit().await?;
                written.new += new;
            }
            Err(error) if is_of_a_row(&error) => {
                txn.rollback().await?;
                match part {
                    [row] => {
                        row.log_refused(&error);
                        written.refused += 1;
                    }
                    _ => left.extend(<[_; 2]>::from(part.split_at(part.len() / 2))),
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(written)
}

impl Insert for EndedJobRow {
    async fn insert(txn: &Transaction<'_>, rows: &[Self]) -> Result<u64, tokio_postgres::Error> {
        let rows = &*erase::kept(txn, rows).await?;
        if rows.is_empty() {
            return Ok(0);
        }
        let ends = txn.prepare(ENDS).await?;
        let columns = Columns::of(rows.iter().copied());
        let tail = Tail::of(rows);
        let mut args = columns.args().to_vec();
        args.extend(tail.args());
        let new = txn.execute(&ends, &args).await?;
        if rows.iter().any(|row| row.body.is_some()) {
            let with_body = || rows.iter().copied().filter(|row| row.body.is_some());
            let columns = Columns::of(with_body());
            let types: Vec<_> = with_body().map(|row| row.content_type.as_deref()).collect();
            let bodies: Vec<_> = with_body().map(|row| row.body.as_deref()).collect();
            let mut args = columns.args().to_vec();
            args.extend::<[&(dyn ToSql + Sync); 2]>([&types, &bodies]);
            let statement = txn.prepare(BODIES).await?;
            txn.execute(&statement, &args).await?;
        }
        Ok(new)
    }

    fn log_refused(&self, error: &tokio_postgres::Error) {
        let Self { tenant, topic, id, state, .. } = self;
        tracing::error!(tenant, topic, id, state, %error, "an ended job is not archived");
    }
}

/// Whether an error is about what is in a row, so that the row will never be accepted: a data exception, or a value
/// that is too large (SQLSTATE classes 22 and 54).
fn is_of_a_row(error: &tokio_postgres::Error) -> bool {
    error.code().is_some_and(|code| code.code().starts_with("22") || code.code().starts_with("54"))
}

/// The columns of the key.
struct Columns<'a> {
    tenants: Vec<&'a str>,
    topics: Vec<&'a str>,
    ids: Vec<&'a str>,
    generations: Vec<i64>,
    attempts: Vec<i64>,
    states: Vec<&'a str>,
    finished: Vec<i64>,
}

impl<'a> Columns<'a> {
    fn of(rows: impl Iterator<Item = &'a EndedJobRow> + Clone) -> Self {
        Self {
            tenants: rows.clone().map(|row| row.tenant.as_str()).collect(),
            topics: rows.clone().map(|row| row.topic.as_str()).collect(),
            ids: rows.clone().map(|row| row.id.as_str()).collect(),
            generations: rows.clone().map(|row| row.generation).collect(),
            attempts: rows.clone().map(|row| row.attempts.into()).collect(),
            states: rows.clone().map(|row| row.state.as_str()).collect(),
            finished: rows.map(|row| row.finished_at).collect(),
        }
    }

    fn args(&self) -> [&(dyn ToSql + Sync); 7] {
        let Self { tenants, topics, ids, generations, attempts, states, finished } = self;
        [tenants, topics, ids, generations, attempts, states, finished]
    }
}

/// The other columns of an ended job.
struct Tail<'a> {
    first_due: Vec<i64>,
    due: Vec<i64>,
    failures: Vec<i64>,
    reasons: Vec<Option<&'a str>>,
    urls: Vec<Option<&'a str>>,
    hosts: Vec<Option<&'a str>>,
    last_at: Vec<Option<i64>>,
    last_status: Vec<Option<i32>>,
    last_errors: Vec<Option<&'a str>>,
    last_durations: Vec<Option<i64>>,
    requests: Vec<Option<&'a str>>,
    logs: Vec<&'a str>,
    are_complete: Vec<bool>,
    /// With a space between them, which no tag has.
    tags: Vec<String>,
}

impl<'a> Tail<'a> {
    fn of(rows: &[&'a EndedJobRow]) -> Self {
        Self {
            first_due: rows.iter().map(|row| row.first_due_at).collect(),
            due: rows.iter().map(|row| row.due_at).collect(),
            failures: rows.iter().map(|row| row.failures.into()).collect(),
            reasons: rows.iter().map(|row| row.reason.as_deref()).collect(),
            urls: rows.iter().map(|row| row.url.as_deref()).collect(),
            hosts: rows.iter().map(|row| row.host.as_deref()).collect(),
            last_at: rows.iter().map(|row| row.last_at).collect(),
            last_status: rows.iter().map(|row| row.last_status.map(Into::into)).collect(),
            last_errors: rows.iter().map(|row| row.last_error.as_deref()).collect(),
            last_durations: rows.iter().map(|row| row.last_duration_ms).collect(),
            requests: rows.iter().map(|row| row.request.as_deref()).collect(),
            logs: rows.iter().map(|row| row.attempt_log.as_str()).collect(),
            are_complete: rows.iter().map(|row| row.is_attempts_complete).collect(),
            tags: rows.iter().map(|row| row.tags.join(" ")).collect(),
        }
    }

    fn args(&self) -> [&(dyn ToSql + Sync); 14] {
        let Self { first_due, due, failures, reasons, urls, hosts, .. } = self;
        let Self {
            last_at,
            last_status,
            last_errors,
            last_durations,
            requests,
            logs,
            are_complete,
            tags,
            ..
        } = self;
        [
            first_due,
            due,
            failures,
            reasons,
            urls,
            hosts,
            last_at,
            last_status,
            last_errors,
            last_durations,
            requests,
            logs,
            are_complete,
            tags,
        ]
    }
}
