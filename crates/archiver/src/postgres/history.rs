//! Answers queries of the history from PostgreSQL: reads pages of ended jobs, and runs erasures, each within its time.

use std::path::Path;
use std::time::Duration;

use ringback_archive::EndedJobRow;
use ringback_archive::erasure::Erasure;
use ringback_archive::history::{History, HistoryRequest, QueryError};
use ringback_postgres::{Connection, Limits, Server};
use tokio::time::timeout;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

use super::{Failed, NAME, erase, schema, too_slow};
use crate::select::{Argument, Dialect, Statement, select};

/// How long a statement may take, and how long an answer.
const STATEMENT: Duration = Duration::from_secs(4);
const ANSWER: Duration = Duration::from_secs(10);
/// How long a statement waits for a lock.
const LOCK: Duration = Duration::from_secs(2);
const LIMITS: Limits = Limits { statement: STATEMENT, lock: LOCK };

/// The history in a PostgreSQL database.
pub(crate) struct PostgresHistory {
    server: Server,
    connection: Option<Connection>,
}

impl PostgresHistory {
    /// Reads the URL, and does not connect.
    ///
    /// # Errors
    /// If the URL or the file of authorities cannot be read. The message does not have the URL.
    pub(crate) fn new(url: &str, authorities: Option<&Path>) -> anyhow::Result<Self> {
        let server = Server::new(url, authorities, NAME).map_err(anyhow::Error::msg)?;
        Ok(Self { server, connection: None })
    }

    /// The connection. If there is none or it was closed, connects, and fails unless the database has the schema of
    /// this build.
    async fn client(&mut self) -> Result<&mut Client, Failed> {
        if self.connection.as_ref().is_none_or(|connection| connection.client.is_closed()) {
            let connected = timeout(STATEMENT, self.server.connect(LIMITS)).await;
            let connection = connected.map_err(|_elapsed| too_slow(STATEMENT))??;
            schema::check(&connection.client).await?;
            self.connection = Some(connection);
        }
        let connection = self.connection.as_mut().map(|connection| &mut connection.client);
        connection.ok_or_else(|| Failed::Other("it is not connected".to_owned()))
    }

    /// The result of a query: [`QueryError::Slow`] if it, a statement or a lock took too long, `Unavailable` for any
    /// other error. Drops the connection after an error.
    fn done<T>(
        &mut self,
        done: Result<Result<T, Failed>, tokio::time::error::Elapsed>,
    ) -> Result<T, QueryError> {
        if matches!(done, Ok(Err(_)) | Err(_)) {
            self.connection = None;
        }
        match done {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(Failed::Database(error))) if is_too_slow(&error) => Err(QueryError::Slow),
            Ok(Err(error)) => Err(QueryError::Unavailable(format!("PostgreSQL: {error}"))),
            Err(_elapsed) => Err(QueryError::Slow),
        }
    }
}

/// Whether a statement was ended because it took too long, or waited for a lock for too long.
fn is_too_slow(error: &tokio_postgres::Error) -> bool {
    error.code().is_some_and(|code| [SqlState::QUERY_CANCELED, SqlState::LOCK_NOT_AVAILABLE].contains(code))
}

impl History for PostgresHistory {
    async fn rows(&mut self, ask: &HistoryRequest) -> Result<Vec<EndedJobRow>, QueryError> {
        let rows = async {
            let client = self.client().await?;
            let Statement { text, arguments } = select(&DIALECT, ask);
            let arguments: Vec<_> = arguments.iter().map(argument).collect();
            let found = client.query(&text, &arguments).await?;
            found.iter().map(|row| read(row, ask)).collect::<Result<Vec<_>, _>>().map_err(Failed::from)
        };
        let rows = timeout(ANSWER, rows).await;
        self.done(rows)
    }

    async fn erase(&mut self, erasure: &Erasure) -> Result<u64, QueryError> {
        let erased = timeout(ANSWER, async { erase::erase(self.client().await?, erasure).await }).await;
        self.done(erased)
    }
}

/// How PostgreSQL writes SQL.
const DIALECT: Dialect = Dialect {
    mark: '$',
    no_index: "",
    time: |ms| format!("('epoch'::timestamptz + {ms} * interval '1 millisecond')"),
    ms: |column| format!("(extract(epoch from {column}) * 1000)::bigint"),
    json: |column| format!("{column}::text"),
    has_tag: |of, _tenant, tag| format!("{of}.tags @> array[{tag}]::text[]"),
};

fn argument(argument: &Argument) -> &(dyn ToSql + Sync) {
    match argument {
        Argument::Text(text) => text,
        Argument::Number(number) => number,
    }
}

fn read(row: &Row, ask: &HistoryRequest) -> Result<EndedJobRow, tokio_postgres::Error> {
    let count = |number: i64| u32::try_from(number).unwrap_or(u32::MAX);
    let status: Option<i32> = row.try_get(14)?;
    Ok(EndedJobRow {
        tenant: row.try_get(0)?,
        topic: row.try_get(1)?,
        id: row.try_get(2)?,
        generation: row.try_get(3)?,
        attempts: count(row.try_get(4)?),
        state: row.try_get(5)?,
        finished_at: row.try_get(6)?,
        first_due_at: row.try_get(7)?,
        due_at: row.try_get(8)?,
        failures: count(row.try_get(9)?),
        reason: row.try_get(10)?,
        url: row.try_get(11)?,
        host: row.try_get(12)?,
        last_at: row.try_get(13)?,
        last_status: status.and_then(|status| status.try_into().ok()),
        last_error: row.try_get(15)?,
        last_duration_ms: row.try_get(16)?,
        tags: row.try_get(17)?,
        is_attempts_complete: row.try_get(18)?,
        attempt_log: row.try_get(19)?,
        request: row.try_get(20)?,
        content_type: row.try_get(21)?,
        body: if ask.with_requests { row.try_get(22)? } else { None },
    })
}
