//! The archive in a SQLite file.

mod audit_log;
mod erase;
mod history;

use std::fs::OpenOptions;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ringback_archive::{AuditEntryRow, EndRow, Sink, SinkError, Written};
use ringback_core::clock::{Clock, Timestamp, millis};
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior, params};

pub(crate) use self::history::SqliteHistory;

/// The versions of the schema, in order: what each adds.
const MIGRATIONS: [&str; 3] =
    [include_str!("sqlite/1.sql"), include_str!("sqlite/2.sql"), include_str!("sqlite/3.sql")];
/// How long another writer of the file is waited for.
const BUSY: Duration = Duration::from_secs(10);
/// The columns of the key of an end.
const KEY: &str = "tenant, topic, id, life, attempts, state, finished_at";
/// How many rows that were kept long enough are removed in one transaction.
const REMOVED: i64 = 5_000;

const ENDS: &str = "insert into ringback_ends (tenant, topic, id, life, attempts, state, finished_at, created_at, first_due_at, \
    due_at, failures, reason, url, host, last_at, last_status, last_error, last_duration_ms, request, attempt_log, \
    attempts_complete, archived_at, tags) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?4, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, \
    ?17, ?18, ?19, ?20, ?21, ?22) on conflict do nothing";
const BODIES: &str = "insert into ringback_bodies (tenant, topic, id, life, attempts, state, finished_at, content_type, body) \
    values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) on conflict do nothing";

const TAGS: &str = "insert into ringback_tags (tenant, topic, id, life, attempts, state, finished_at, tag) \
    values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) on conflict do nothing";

/// Opens a file, which is readable by its owner alone if it is new: bodies of jobs are secret. SQLite gives the files beside it
/// the same mode.
fn open(file: &Path) -> rusqlite::Result<Connection> {
    // What keeps it from being made is in the error of the next step.
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(file).ok();
    Connection::open_with_flags(file, OpenFlags::default())
}

/// The device and the number of a file; `None` if there is none.
fn identity(file: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(file).ok().map(|found| (found.dev(), found.ino()))
}

/// A SQLite file.
pub(crate) struct Sqlite {
    file: PathBuf,
    keep: Option<Duration>,
    clock: Arc<dyn Clock>,
    connection: Arc<Mutex<Option<Connection>>>,
    /// The device and the number of the open file. Another file may get its path.
    identity: Option<(u64, u64)>,
}

impl Sqlite {
    pub(crate) fn new(file: PathBuf, keep: Option<Duration>, clock: Arc<dyn Clock>) -> Self {
        Self { file, keep, clock, connection: Arc::default(), identity: None }
    }

    /// Runs `work` on a thread that may block. After an error the file is opened again.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Option<Connection>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, SinkError> {
        let connection = Arc::clone(&self.connection);
        let file = self.file.display().to_string();
        let done = tokio::task::spawn_blocking(move || {
            let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
            let done = work(&mut connection);
            if done.is_err() {
                *connection = None;
            }
            done
        });
        let done = done.await.map_err(|error| SinkError(format!("{file}: {error}")))?;
        done.map_err(|error| SinkError(format!("{file}: {error}")))
    }

    /// Fails if the path leads to another file than the open one. Then the file is opened again.
    ///
    /// Rows that were written since are in a file that nobody finds, so this is looked at before each batch.
    fn check_identity(&self) -> Result<(), SinkError> {
        let found = identity(&self.file);
        if found.is_some() && found == self.identity {
            return Ok(());
        }
        let what = if found.is_some() { "replaced by another file" } else { "removed" };
        *self.connection.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Err(SinkError(format!("{} was {what} while it was open", self.file.display())))
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
        let (file, now) = (self.file.clone(), self.clock.now());
        let version = self.blocking(move |connection| {
            // What another process has done with the file is seen by a new connection.
            *connection = None;
            let mut opened = open(&file)?;
            opened.busy_timeout(BUSY)?;
            opened.pragma_update(None, "journal_mode", "wal")?;
            // An end leaves the store once it is committed here, so it has to survive a crash of the machine.
            opened.pragma_update(None, "synchronous", "full")?;
            let version = migrate(&mut opened, now)?;
            *connection = Some(opened);
            Ok(version)
        });
        let version = version.await?;
        self.identity = identity(&self.file);
        if version > MIGRATIONS.len() as i64 {
            *self.connection.lock().unwrap_or_else(PoisonError::into_inner) = None;
            return Err(SinkError(format!(
                "{} has version {version} of the schema, and this archiver knows {}: use the version that made it",
                self.file.display(),
                MIGRATIONS.len()
            )));
        }
        Ok(format!("SQLite {}, schema {version}", rusqlite::version()))
    }

    async fn write(&mut self, rows: &[EndRow]) -> Result<Written, SinkError> {
        self.check_identity()?;
        let (rows, now) = (rows.to_vec(), self.clock.now());
        self.in_transaction(move |txn| insert(txn, &rows, now)).await
    }

    async fn write_audit_log(&mut self, rows: &[AuditEntryRow]) -> Result<Written, SinkError> {
        self.check_identity()?;
        let (rows, now) = (rows.to_vec(), self.clock.now());
        self.in_transaction(move |txn| audit_log::insert(txn, &rows, now)).await
    }

    async fn maintain(&mut self) -> Result<(), SinkError> {
        self.check_identity()?;
        let now = ms(self.clock.now());
        self.blocking(move |connection| erase::forget_before(connection, now)).await?;
        let Some(before) = self.keep.map(|keep| now.saturating_sub_unsigned(millis(keep))) else {
            return Ok(());
        };
        loop {
            let removed = self.in_transaction(move |txn| {
                let mut removed = 0;
                for (table, key, time) in [
                    ("ringback_ends", KEY, "finished_at"),
                    ("ringback_tags", "tenant, tag, finished_at, topic, id, life, attempts, state", "finished_at"),
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

/// Brings the schema up to date, and returns its version.
fn migrate(connection: &mut Connection, now: Timestamp) -> rusqlite::Result<i64> {
    // The lock of the transaction keeps other archivers out.
    let txn = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    txn.execute_batch(
        "create table if not exists ringback_migrations (version integer primary key, applied_at integer not null)",
    )?;
    let version: i64 =
        txn.query_row("select coalesce(max(version), 0) from ringback_migrations", [], |row| row.get(0))?;
    for (number, sql) in (1_i64..).zip(MIGRATIONS).skip(usize::try_from(version).unwrap_or(usize::MAX)) {
        txn.execute_batch(sql)?;
        txn.execute("insert into ringback_migrations values (?1, ?2)", params![number, ms(now)])?;
    }
    txn.commit()?;
    Ok(version.max(MIGRATIONS.len() as i64))
}

fn insert(txn: &Transaction<'_>, rows: &[EndRow], now: Timestamp) -> rusqlite::Result<Written> {
    let (mut ends, mut bodies, mut tags) = (txn.prepare(ENDS)?, txn.prepare(BODIES)?, txn.prepare(TAGS)?);
    let mut written = Written::default();
    for row in erase::kept(txn, rows)? {
        let EndRow { tenant, topic, id, life, attempts, state, finished_at, .. } = row;
        let new = ends.execute(params![
            tenant,
            topic,
            id,
            life,
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
                tracing::error!(tenant, topic, id, state, %error, "an end is not archived");
                written.refused += 1;
                continue;
            }
            Err(error) => return Err(error),
        }
        for tag in &row.tags {
            tags.execute(params![tenant, topic, id, life, attempts, state, finished_at, tag])?;
        }
        if let Some(body) = &row.body {
            bodies.execute(params![
                tenant,
                topic,
                id,
                life,
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

/// Whether an error is about what is in a row, so that the row will never be accepted.
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
