//! The sink that writes the archive to a SQLite file: makes the file and its schema, writes ended jobs and the audit
//! log, and removes what is older than the retention. `history` reads.

mod audit_log;
mod erase;
mod history;

use std::fs::OpenOptions;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ringback_archive::{AuditEntryRow, EndedJobRow, Sink, SinkError, WriteResult};
use ringback_core::clock::{Clock, Timestamp, millis};
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior, params};

pub(crate) use self::history::SqliteHistory;
use crate::schema;

/// How long another writer of the file is waited for.
const BUSY: Duration = Duration::from_secs(10);
/// The columns of the key of an ended job.
const KEY: &str = "tenant, topic, id, generation, attempts, state, finished_at";
/// How many rows that were kept long enough are removed in one transaction.
const REMOVED: i64 = 5_000;

const ENDS: &str = "insert into ringback_ended_jobs (tenant, topic, id, generation, attempts, state, finished_at, created_at, first_due_at, \
    due_at, failures, reason, url, host, last_at, last_status, last_error, last_duration_ms, request, attempt_log, \
    attempts_complete, archived_at, tags) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?4, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, \
    ?17, ?18, ?19, ?20, ?21, ?22) on conflict do nothing";
const BODIES: &str = "insert into ringback_bodies (tenant, topic, id, generation, attempts, state, finished_at, content_type, body) \
    values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) on conflict do nothing";

const TAGS: &str = "insert into ringback_tags (tenant, topic, id, generation, attempts, state, finished_at, tag) \
    values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) on conflict do nothing";

/// The error for a file that is gone.
const REMOVED_FILE: &str = "the file was removed, moved or replaced while it was open; put it back, or start the archiver again to begin a new one";

/// Makes a file, unless there is one, that only its owner can read: bodies of jobs are secret. SQLite gives the files
/// beside it the same mode. Ignores errors.
fn create(file: &Path) {
    // What keeps it from being made is in the error of the next step.
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(file).ok();
}

/// Identifies a file by its device and inode; `None` if it cannot be found under this name.
fn id(file: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(file).ok().map(|found| (found.dev(), found.ino()))
}

/// A SQLite file.
pub(crate) struct Sqlite {
    file: PathBuf,
    keep: Option<Duration>,
    clock: Arc<dyn Clock>,
    connection: Arc<Mutex<Option<Connection>>>,
    /// The device and inode of the file that was opened last.
    opened: Option<(u64, u64)>,
}

impl Sqlite {
    pub(crate) fn new(file: PathBuf, keep: Option<Duration>, clock: Arc<dyn Clock>) -> Self {
        Self { file, keep, clock, connection: Arc::default(), opened: None }
    }

    /// Runs `work` on a thread that may block. Fails with its error, or if the file was removed or replaced meanwhile:
    /// what was written to it is gone. A failure closes the file, and the next `prepare` opens it again.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Option<Connection>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, SinkError> {
        let (connection, path, opened) = (Arc::clone(&self.connection), self.file.clone(), self.opened);
        let file = self.file.display().to_string();
        let done = tokio::task::spawn_blocking(move || {
            let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
            let done = work(&mut connection).map_err(|error| error.to_string());
            let done = if opened == id(&path) { done } else { done.and(Err(REMOVED_FILE.to_owned())) };
            if done.is_err() {
                *connection = None;
            }
            done
        });
        let done = done.await.map_err(|error| SinkError(format!("{file}: {error}")))?;
        done.map_err(|error| SinkError(format!("{file}: {error}")))
    }

    /// Makes the file, unless one was opened before. Fails if that one was removed since: it is not made anew, because
    /// the ended jobs in it would be missing and nobody would notice.
    fn find_file(&mut self) -> Result<(), SinkError> {
        if self.opened.is_none() {
            create(&self.file);
        }
        match id(&self.file) {
            None if self.opened.is_some() => {
                Err(SinkError(format!("{}: {REMOVED_FILE}", self.file.display())))
            }
            found => {
                self.opened = found;
                Ok(())
            }
        }
    }

    async fn in_transaction<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, SinkError> {
        self.blocking(move |connection| {
            let txn = begin(connection)?;
            let done = work(&txn)?;
            txn.commit()?;
            Ok(done)
        })
        .await
    }
}

impl Sink for Sqlite {
    async fn prepare(&mut self) -> Result<String, SinkError> {
        self.find_file()?;
        let file = self.file.clone();
        let version = self.blocking(move |connection| {
            // What another process has done with the file is seen by a new connection.
            *connection = None;
            let mut opened = Connection::open_with_flags(&file, OpenFlags::default())?;
            opened.busy_timeout(BUSY)?;
            opened.pragma_update(None, "journal_mode", "wal")?;
            // An ended job leaves the store once it is committed here, so it has to survive a crash of the machine.
            opened.pragma_update(None, "synchronous", "full")?;
            let version = make_schema(&mut opened)?;
            *connection = Some(opened);
            Ok(version)
        });
        schema::check(version.await?).map_err(|why| {
            *self.connection.lock().unwrap_or_else(PoisonError::into_inner) = None;
            SinkError(format!("{}: {why}", self.file.display()))
        })?;
        Ok(format!("SQLite {}, schema {}", rusqlite::version(), schema::VERSION))
    }

    async fn write(&mut self, rows: &[EndedJobRow]) -> Result<WriteResult, SinkError> {
        if rows.is_empty() {
            return self.blocking(|_| Ok(WriteResult::default())).await;
        }
        let (rows, now) = (rows.to_vec(), self.clock.now());
        self.in_transaction(move |txn| insert(txn, &rows, now)).await
    }

    async fn write_audit_log(&mut self, rows: &[AuditEntryRow]) -> Result<WriteResult, SinkError> {
        let (rows, now) = (rows.to_vec(), self.clock.now());
        self.in_transaction(move |txn| audit_log::insert(txn, &rows, now)).await
    }

    async fn maintain(&mut self) -> Result<(), SinkError> {
        let now = ms(self.clock.now());
        self.blocking(move |connection| erase::forget_before(connection, now)).await?;
        let Some(before) = self.keep.map(|keep| now.saturating_sub_unsigned(millis(keep))) else {
            return Ok(());
        };
        loop {
            let removed = self.in_transaction(move |txn| {
                let mut removed = 0;
                for (table, key, time) in [
                    ("ringback_ended_jobs", KEY, "finished_at"),
                    ("ringback_tags", "tenant, tag, finished_at, topic, id, generation, attempts, state", "finished_at"),
                    ("ringback_bodies", "rowid", "finished_at"),
                    ("ringback_audit_log", "id", "at"),
                ] {
                    let sql = format!(
                        "delete from {table} where ({key}) in (select {key} from {table} where {time} < ?1 limit ?2)"
                    );
                    removed += txn.execute(&sql, params![before, REMOVED])?;
                }
                Ok(removed)
            });
            if removed.await? == 0 {
                return Ok(());
            }
        }
    }
}

fn begin(connection: &mut Option<Connection>) -> rusqlite::Result<Transaction<'_>> {
    let connection = connection.as_mut().ok_or(rusqlite::Error::InvalidQuery)?;
    connection.transaction_with_behavior(TransactionBehavior::Immediate)
}

/// Makes the schema in a file that has none. Returns its version.
fn make_schema(connection: &mut Connection) -> rusqlite::Result<i32> {
    // The lock of the transaction keeps other archivers out.
    let txn = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if version(&txn)? == 0 {
        txn.execute_batch(include_str!("sqlite/schema.sql"))?;
    }
    let version = version(&txn)?;
    txn.commit()?;
    Ok(version)
}

/// The version of the schema; 0 if there is none.
fn version(connection: &Connection) -> rusqlite::Result<i32> {
    let table = "select count(*) from sqlite_master where name = 'ringback_schema'";
    if connection.query_row(table, [], |row| row.get::<_, i32>(0))? == 0 {
        return Ok(0);
    }
    connection.query_row("select coalesce(max(version), 0) from ringback_schema", [], |row| row.get(0))
}

fn insert(txn: &Transaction<'_>, rows: &[EndedJobRow], now: Timestamp) -> rusqlite::Result<WriteResult> {
    let (mut ends, mut bodies, mut tags) = (txn.prepare(ENDS)?, txn.prepare(BODIES)?, txn.prepare(TAGS)?);
    let mut written = WriteResult::default();
    for row in erase::kept(txn, rows)? {
        let EndedJobRow { tenant, topic, id, generation, attempts, state, finished_at, .. } = row;
        let new = ends.execute(params![
            tenant,
            topic,
            id,
            generation,
            attempts,
            state,
            finished_at,
            row.first_due_at,
            row.due_at,
            row.failures,
            row.reason,
            row.url,
            row.host,
            row.last_at,
            row.last_status,
            row.last_error,
            row.last_duration_ms,
            row.request,
            row.attempt_log,
            row.is_attempts_complete,
            ms(now),
            serde_json::to_string(&row.tags).unwrap_or_default()
        ]);
        match new {
            Ok(new) => written.new += new as u64,
            Err(error) if is_of_the_row(&error) => {
                tracing::error!(tenant, topic, id, state, %error, "an ended job is not archived");
                written.refused += 1;
                continue;
            }
            Err(error) => return Err(error),
        }
        for tag in &row.tags {
            tags.execute(params![tenant, topic, id, generation, attempts, state, finished_at, tag])?;
        }
        if let Some(body) = &row.body {
            bodies.execute(params![
                tenant,
                topic,
                id,
                generation,
                attempts,
                state,
                finished_at,
                row.content_type,
                body
            ])?;
        }
    }
    Ok(written)
}

/// Whether an error is about the content of a row, so that the row will never be accepted.
fn is_of_the_row(error: &rusqlite::Error) -> bool {
    match error {
        rusqlite::Error::SqliteFailure(error, _) => {
            matches!(error.code, ErrorCode::ConstraintViolation | ErrorCode::TooBig | ErrorCode::TypeMismatch)
        }
        rusqlite::Error::ToSqlConversionFailure(_) => true,
        _ => false,
    }
}

fn ms(time: Timestamp) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
