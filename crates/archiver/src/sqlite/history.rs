//! Answers queries of the history from a SQLite file: reads pages of ended jobs, and runs erasures, each within 4 s.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ringback_archive::EndedJobRow;
use ringback_archive::erasure::Erasure;
use ringback_archive::history::{History, HistoryRequest, QueryError};
use rusqlite::types::Value;
use rusqlite::{Connection, ErrorCode, InterruptHandle, OpenFlags, Row, params_from_iter};
use tokio::time::timeout;

use super::{erase, id, version};
use crate::schema;
use crate::select::{Argument, Dialect, Statement, select};

/// How long a query may take.
const QUERY: Duration = Duration::from_secs(4);
/// How long a writer of the file is waited for.
const BUSY: Duration = Duration::from_secs(2);

/// The history in a SQLite file.
pub(crate) struct SqliteHistory {
    file: PathBuf,
    connection: Arc<Mutex<OpenFile>>,
}

/// A connection, and the device and inode of its file.
type OpenFile = (Option<Connection>, Option<(u64, u64)>);

impl SqliteHistory {
    pub(crate) fn new(file: PathBuf) -> Self {
        Self { file, connection: Arc::default() }
    }

    /// Runs `work` on a thread that may block, and interrupts it after [`QUERY`]. Opens the file if it is not open, or
    /// was replaced, and closes it after an error. [`QueryError::Slow`] if it was interrupted or the file was locked.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Option<Connection>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, QueryError> {
        let (file, slot) = (self.file.clone(), Arc::clone(&self.connection));
        let handle = Arc::new(Mutex::new(None::<InterruptHandle>));
        let shared = Arc::clone(&handle);
        let mut done = tokio::task::spawn_blocking(move || {
            let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
            // A file that was removed or replaced can be read as before, and is not the archive.
            let found = id(&file);
            if slot.0.is_none() || slot.1 != found {
                *slot = (Some(open(&file)?), found);
            }
            let interrupt = slot.0.as_ref().map(Connection::get_interrupt_handle);
            *shared.lock().unwrap_or_else(PoisonError::into_inner) = interrupt;
            let done = work(&mut slot.0);
            if done.is_err() {
                slot.0 = None;
            }
            done.map_err(|error| failed(&error))
        });
        let done = match timeout(QUERY, &mut done).await {
            Ok(done) => done,
            Err(_elapsed) => {
                if let Some(handle) = &*handle.lock().unwrap_or_else(PoisonError::into_inner) {
                    handle.interrupt();
                }
                done.await
            }
        };
        let done = done.unwrap_or_else(|error| Err(QueryError::Unavailable(error.to_string())));
        done.map_err(|error| match error {
            QueryError::Unavailable(why) => {
                QueryError::Unavailable(format!("{}: {why}", self.file.display()))
            }
            QueryError::Slow => QueryError::Slow,
        })
    }
}

fn failed(error: &rusqlite::Error) -> QueryError {
    match error.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted | ErrorCode::DatabaseBusy) => QueryError::Slow,
        _ => QueryError::Unavailable(error.to_string()),
    }
}

/// Opens the file, so that erased content will be overwritten. Fails if an archiver has not made it with the schema of
/// this build.
fn open(file: &PathBuf) -> Result<Connection, QueryError> {
    let flags = OpenFlags::default() & !OpenFlags::SQLITE_OPEN_CREATE;
    let connection = Connection::open_with_flags(file, flags).map_err(|error| failed(&error))?;
    connection.busy_timeout(BUSY).map_err(|error| failed(&error))?;
    // Erased content is overwritten, and does not stay in free pages.
    connection.pragma_update(None, "secure_delete", "on").map_err(|error| failed(&error))?;
    let version = version(&connection).map_err(|error| failed(&error))?;
    schema::check(version).map_err(QueryError::Unavailable)?;
    Ok(connection)
}

impl History for SqliteHistory {
    async fn rows(&mut self, ask: &HistoryRequest) -> Result<Vec<EndedJobRow>, QueryError> {
        let ask = ask.clone();
        self.blocking(move |connection| {
            let connection = connection.as_ref().ok_or(rusqlite::Error::InvalidQuery)?;
            let Statement { text, arguments } = select(&DIALECT, &ask);
            let arguments = arguments.into_iter().map(Value::from);
            let mut statement = connection.prepare(&text)?;
            let rows = statement.query_map(params_from_iter(arguments), |row| read(row, &ask))?;
            rows.collect()
        })
        .await
    }

    async fn erase(&mut self, erasure: &Erasure) -> Result<u64, QueryError> {
        let erasure = erasure.clone();
        self.blocking(move |connection| erase::erase(connection, &erasure)).await
    }
}

/// How SQLite writes SQL. Times are ms.
const DIALECT: Dialect = Dialect {
    mark: '?',
    no_index: "+",
    time: str::to_owned,
    ms: str::to_owned,
    json: str::to_owned,
    has_tag: |of, tenant, tag| {
        let key = ["topic", "id", "generation", "attempts", "state", "finished_at"];
        format!(
            "({}) in (select {} from ringback_tags where tenant = {tenant} and tag = {tag})",
            key.map(|column| format!("{of}.{column}")).join(", "),
            key.join(", ")
        )
    },
};

impl From<Argument> for Value {
    fn from(argument: Argument) -> Self {
        match argument {
            Argument::Text(text) => text.into(),
            Argument::Number(number) => number.into(),
        }
    }
}

fn read(row: &Row<'_>, ask: &HistoryRequest) -> rusqlite::Result<EndedJobRow> {
    let tags: String = row.get(17)?;
    Ok(EndedJobRow {
        tenant: row.get(0)?,
        topic: row.get(1)?,
        id: row.get(2)?,
        generation: row.get(3)?,
        attempts: row.get(4)?,
        state: row.get(5)?,
        finished_at: row.get(6)?,
        first_due_at: row.get(7)?,
        due_at: row.get(8)?,
        failures: row.get(9)?,
        reason: row.get(10)?,
        url: row.get(11)?,
        host: row.get(12)?,
        last_at: row.get(13)?,
        last_status: row.get(14)?,
        last_error: row.get(15)?,
        last_duration_ms: row.get(16)?,
        tags: serde_json::from_str(&tags).unwrap_or_default(),
        is_attempts_complete: row.get(18)?,
        attempt_log: row.get(19)?,
        request: row.get(20)?,
        content_type: row.get(21)?,
        body: if ask.with_requests { row.get(22)? } else { None },
    })
}
