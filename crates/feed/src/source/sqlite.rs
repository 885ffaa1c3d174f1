//! A SQLite file as the database of a feed, opened to read.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags, ToSql};
use tokio::time::timeout;

use super::{Page, PageAsk, SourceError, Value};
use crate::query::{Parameter, Query};

/// How long a query waits for writers.
const BUSY: Duration = Duration::from_secs(5);
/// How long a query may take.
const QUERY: Duration = Duration::from_secs(30);

/// A SQLite file.
pub(crate) struct Sqlite {
    file: PathBuf,
    connection: Arc<Mutex<Option<Connection>>>,
}

impl Sqlite {
    pub(crate) fn new(file: PathBuf) -> Self {
        Self { file, connection: Arc::default() }
    }

    /// Reads a page of a query.
    ///
    /// # Errors
    /// If the file cannot be read, or SQLite refuses the query.
    pub(crate) async fn page(&mut self, query: &Query, ask: &PageAsk) -> Result<Page, SourceError> {
        let (file, shared) = (self.file.clone(), Arc::clone(&self.connection));
        let (query, ask, named) = (query.clone(), ask.clone(), self.file.display().to_string());
        let (interrupt, interrupted) = tokio::sync::oneshot::channel();
        let work = tokio::task::spawn_blocking(move || {
            let mut connection = shared.lock().unwrap_or_else(PoisonError::into_inner);
            let page = open(&mut connection, &file).and_then(|connection| {
                // Nobody interrupts if the caller is gone.
                interrupt.send(connection.get_interrupt_handle()).ok();
                read(connection, &query, &ask)
            });
            if page.is_err() {
                *connection = None;
            }
            page
        });
        let failed = |why: String| SourceError(format!("{named}: {why}"));
        let mut work = std::pin::pin!(work);
        let page = match timeout(QUERY, &mut work).await {
            Ok(page) => page,
            Err(_elapsed) => {
                if let Ok(handle) = interrupted.await {
                    handle.interrupt();
                }
                drop(work.await);
                return Err(failed(format!("the query took longer than {QUERY:?}")));
            }
        };
        page.map_err(|error| failed(error.to_string()))?.map_err(|error| failed(error.to_string()))
    }
}

fn open<'a>(connection: &'a mut Option<Connection>, file: &PathBuf) -> rusqlite::Result<&'a Connection> {
    if connection.is_none() {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Connection::open_with_flags(file, flags)?;
        opened.busy_timeout(BUSY)?;
        *connection = Some(opened);
    }
    connection.as_ref().ok_or(rusqlite::Error::InvalidQuery)
}

/// The first page is asked for with the least integer. Where ids are texts it is asked for again with the empty text, for an
/// integer that is compared with a text becomes one.
fn read(connection: &Connection, query: &Query, ask: &PageAsk) -> rusqlite::Result<Page> {
    let after = ask.after.clone().unwrap_or(Value::Int(i64::MIN));
    let page = read_after(connection, query, ask, &after)?;
    let id = page.columns.iter().position(|name| name == "id");
    let first = id.and_then(|id| page.rows.first()?.get(id));
    match first {
        None | Some(Value::Text(_)) if ask.after.is_none() => {
            read_after(connection, query, ask, &Value::Text(String::new()))
        }
        _ => Ok(page),
    }
}

fn read_after(
    connection: &Connection,
    query: &Query,
    ask: &PageAsk,
    after: &Value,
) -> rusqlite::Result<Page> {
    let mut statement = connection.prepare(&query.text)?;
    for parameter in &query.parameters {
        let Some(index) = statement.parameter_index(parameter.name())? else { continue };
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
    let (mut rows, mut found) = (Vec::new(), statement.raw_query());
    while let Some(row) = found.next()? {
        let values = (0..columns.len()).map(|column| row.get_ref(column).map(value));
        rows.push(values.collect::<rusqlite::Result<_>>()?);
    }
    Ok(Page { columns, rows })
}

struct After<'a>(&'a Value);

impl ToSql for After<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self.0 {
            Value::Int(id) => ToSqlOutput::from(*id),
            Value::Float(id) => ToSqlOutput::from(*id),
            Value::Text(id) => ToSqlOutput::from(id.as_str()),
            Value::Bytes(id) => ToSqlOutput::from(id.as_slice()),
            Value::Null
            | Value::Bool(_)
            | Value::Json(_)
            | Value::Time(_)
            | Value::List(_)
            | Value::Unreadable(_) => ToSqlOutput::from(rusqlite::types::Null),
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
            Err(_) => Value::Unreadable("is no UTF-8".to_owned()),
        },
        ValueRef::Blob(bytes) => Value::Bytes(bytes.to_vec()),
    }
}
