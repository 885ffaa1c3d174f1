//! A SQLite file as the database of a feed: opens it read-only, and runs queries on a thread, for at most 30 s.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::types::{Null, ToSqlOutput, ValueRef};
use rusqlite::{Connection, InterruptHandle, OpenFlags, ToSql};
use tokio::time::timeout;

use super::answer_watch::answered;
use super::{PAGE_BYTES, Page, PageRequest, SourceError, Value};
use crate::query::{Parameter, Query};

/// How long a query waits for writers.
const BUSY: Duration = Duration::from_secs(5);
/// How long a query may take.
const QUERY: Duration = Duration::from_secs(30);

/// A SQLite file.
pub(crate) struct Sqlite {
    file: PathBuf,
    shared: Arc<Shared>,
}

/// Shared by the threads that run queries, one at a time.
#[derive(Default)]
struct Shared {
    connection: Mutex<Option<OpenFile>>,
    /// Ends the query that runs.
    running: Mutex<Option<InterruptHandle>>,
}

struct OpenFile {
    connection: Connection,
    /// Its device and number. Another file may get its path.
    identity: (u64, u64),
}

impl Sqlite {
    pub(crate) fn new(file: PathBuf) -> Self {
        Self { file, shared: Arc::default() }
    }

    /// Reads a page of a query.
    ///
    /// # Errors
    /// If the file cannot be read, SQLite refuses the query, or it takes too long.
    pub(crate) async fn page(&mut self, query: &Query, ask: &PageRequest) -> Result<Page, SourceError> {
        let named = self.file.display().to_string();
        let (file, shared, query, ask) =
            (self.file.clone(), Arc::clone(&self.shared), query.clone(), ask.clone());
        let _interrupts = InterruptOnDrop(Arc::clone(&self.shared));
        let work = tokio::task::spawn_blocking(move || shared.page(&file, &query, &ask));
        let page = match timeout(QUERY, answered(work)).await {
            Ok(Ok(page)) => page,
            Ok(Err(error)) => Err(error.to_string()),
            Err(_elapsed) => Err(format!("the query took longer than {QUERY:?}")),
        };
        page.map_err(|why| SourceError(format!("{named}: {why}")))
    }
}

/// Interrupts the running query when it is dropped.
struct InterruptOnDrop(Arc<Shared>);

impl Drop for InterruptOnDrop {
    fn drop(&mut self) {
        if let Some(handle) = &*lock(&self.0.running) {
            handle.interrupt();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn page(&self, file: &Path, query: &Query, ask: &PageRequest) -> Result<Page, String> {
        let mut connection = lock(&self.connection);
        let page = open(&mut connection, file).and_then(|connection| {
            *lock(&self.running) = Some(connection.get_interrupt_handle());
            read(connection, query, ask)
        });
        *lock(&self.running) = None;
        if page.is_err() {
            *connection = None;
        }
        page
    }
}

/// An error as text, without the text of the query, which may have secrets.
fn message(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqlInputError { msg, offset, .. } => {
            format!("{msg} (at character {offset} of the query)")
        }
        other => other.to_string(),
    }
}

/// Opens a file, unless it is open already and its path still leads to the same file.
fn open<'a>(opened: &'a mut Option<OpenFile>, file: &Path) -> Result<&'a Connection, String> {
    let found = std::fs::metadata(file).map_err(|error| error.to_string())?;
    let identity = (found.dev(), found.ino());
    opened.take_if(|opened| opened.identity != identity);
    let connect = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(file, flags)?;
        connection.busy_timeout(BUSY)?;
        Ok(OpenFile { connection, identity })
    };
    let current = match opened.take() {
        Some(current) => current,
        None => connect().map_err(|error: rusqlite::Error| message(&error))?,
    };
    Ok(&opened.insert(current).connection)
}

/// Reads a page. The first page is read with the least integer as `:after`, and again with the empty text if there are
/// no rows or the ids are texts. Fails if ids are texts and the query compares `:after` with integers.
fn read(connection: &Connection, query: &Query, ask: &PageRequest) -> Result<Page, String> {
    let read = |after: &Value| read_after(connection, query, ask, after).map_err(|error| message(&error));
    if let Some(after) = &ask.after {
        return read(after);
    }
    let page = read(&Value::Int(i64::MIN))?;
    let id = page.columns.iter().position(|name| name == "id");
    match id.and_then(|id| page.rows.first()?.get(id)) {
        None => read(&Value::Text(String::new())),
        Some(Value::Text(_) | Value::NotUtf8(_)) => {
            let of_texts = read(&Value::Text(String::new()))?;
            if of_texts.rows.is_empty() {
                return Err("the query yields texts as id and compares :after with integers: compare what it yields as id"
                    .to_owned());
            }
            Ok(of_texts)
        }
        Some(_) => Ok(page),
    }
}

fn read_after(
    connection: &Connection,
    query: &Query,
    ask: &PageRequest,
    after: &Value,
) -> rusqlite::Result<Page> {
    let mut statement = connection.prepare(&query.sql)?;
    for parameter in &query.parameters {
        let Some(index) = statement.parameter_index(<&str>::from(parameter))? else { continue };
        match parameter {
            Parameter::From => statement.raw_bind_parameter(index, ask.from.to_string())?,
            Parameter::To => statement.raw_bind_parameter(index, ask.to.to_string())?,
            Parameter::After => statement.raw_bind_parameter(index, After(after))?,
            Parameter::Limit => {
                statement.raw_bind_parameter(index, i64::try_from(ask.limit).unwrap_or(i64::MAX))?;
            }
        }
    }
    let columns: Vec<_> = statement.column_names().map(str::to_owned).collect();
    let (mut rows, mut bytes, mut found) = (Vec::new(), 0, statement.raw_query());
    while bytes < PAGE_BYTES
        && let Some(row) = found.next()?
    {
        let values = (0..columns.len()).map(|column| row.get_ref(column).map(value));
        let row = values.collect::<rusqlite::Result<Vec<_>>>()?;
        bytes += row.iter().map(Value::size).sum::<usize>();
        rows.push(row);
    }
    drop(found);
    Ok(Page { columns, rows })
}

struct After<'a>(&'a Value);

impl ToSql for After<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self.0 {
            Value::Int(id) => ToSqlOutput::from(*id),
            Value::Float(id) => ToSqlOutput::from(*id),
            Value::Text(id) => ToSqlOutput::from(id.as_str()),
            Value::NotUtf8(id) => ToSqlOutput::Borrowed(ValueRef::Text(id)),
            Value::Bytes(id) => ToSqlOutput::from(id.as_slice()),
            Value::Null
            | Value::Bool(_)
            | Value::Json(_)
            | Value::Time(_)
            | Value::List(_)
            | Value::Unreadable(_) => ToSqlOutput::from(Null),
        })
    }
}

fn value(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Int(number),
        ValueRef::Real(number) => Value::Float(number),
        ValueRef::Text(text) => match std::str::from_utf8(text) {
            Ok(text) => Value::Text(text.to_owned()),
            Err(_) => Value::NotUtf8(text.to_vec()),
        },
        ValueRef::Blob(bytes) => Value::Bytes(bytes.to_vec()),
    }
}
