//! PostgreSQL as the database of a feed: connects, and runs queries within limits of time and size. The connection is
//! read-only, unless `outbox` uses it. `postgres_values` converts the values.

use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use ringback_postgres::{Connection, Limits, Server, describe};
use tokio::time::timeout;
use tokio_postgres::types::ToSql;
use tokio_postgres::{GenericClient, Statement};

use super::answer_watch::answered;
use super::postgres_values::{Argument, read_row, unreadable_column};
use super::{PAGE_BYTES, Page, PageRequest, SourceError, Value};
use crate::config::PostgresUrl;
use crate::query::{Parameter, Query};

/// How long a statement may take.
const STATEMENT: Duration = Duration::from_secs(30);
/// How much longer its answer may take.
const ANSWER: Duration = Duration::from_secs(10);
const LIMITS: Limits = Limits { statement: STATEMENT, lock: Duration::from_secs(5) };
/// The application name that the server shows for the connection.
const NAME: &str = "ringback-feed";

/// A PostgreSQL database.
pub(crate) struct Postgres {
    server: Server,
    connection: Option<Connection>,
    /// The queries of the feed, each with its statement on this connection.
    prepared: Vec<(String, Statement)>,
}

impl Postgres {
    /// Reads the URL, and does not connect.
    ///
    /// # Errors
    /// If the URL or the file of authorities cannot be read.
    pub(crate) fn new(url: &PostgresUrl, authorities: Option<&Path>) -> anyhow::Result<Self> {
        let server = Server::new(&url.0, authorities, NAME).map_err(anyhow::Error::msg)?;
        Ok(Self { server, connection: None, prepared: Vec::new() })
    }

    /// Connects, and ends a former connection.
    ///
    /// # Errors
    /// If the server cannot be reached or refuses it.
    pub(crate) async fn connect(&mut self) -> Result<&mut Connection, SourceError> {
        self.connection = None;
        self.prepared.clear();
        let connection = wait(self.server.connect(LIMITS)).await?;
        Ok(self.connection.insert(connection))
    }

    /// Reads a page of a query, on a read-only connection, which it makes if there is none.
    ///
    /// # Errors
    /// If the server cannot be reached or is too slow, refuses the query, or a column has a type that is not read. Then
    /// the connection is closed.
    pub(crate) async fn page(&mut self, query: &Query, ask: &PageRequest) -> Result<Page, SourceError> {
        let page = self.read(query, ask).await;
        if page.is_err() {
            self.connection = None;
        }
        page
    }

    async fn read(&mut self, query: &Query, ask: &PageRequest) -> Result<Page, SourceError> {
        if self.connection.is_none() {
            let read_only = "set default_transaction_read_only = on";
            wait(self.connect().await?.client.batch_execute(read_only)).await?;
        }
        let Self { connection, prepared, .. } = self;
        let connected = connection.as_ref().map(|connection| &connection.client);
        let client = connected.ok_or_else(|| SourceError("it is not connected".to_owned()))?;
        let known = prepared.iter().position(|(text, _)| *text == query.sql);
        let known = match known {
            Some(known) => known,
            None => {
                let statement = prepare(client, &query.sql).await?;
                prepared.push((query.sql.clone(), statement));
                prepared.len() - 1
            }
        };
        let statement = &prepared[known].1;
        let argument = |parameter: &Parameter| match parameter {
            Parameter::From => Argument::Time(Parameter::From, ask.from),
            Parameter::To => Argument::Time(Parameter::To, ask.to),
            Parameter::After => Argument::After(ask.after.clone()),
            Parameter::Limit => Argument::Limit(ask.limit),
        };
        let arguments: Vec<_> = query.parameters.iter().map(argument).collect();
        let arguments: Vec<_> = arguments.iter().map(|argument| argument as &(dyn ToSql + Sync)).collect();
        run(client, statement, &arguments).await
    }
}

/// Reads the rows of a query, until they are [`PAGE_BYTES`].
///
/// # Errors
/// If the server cannot be reached or is too slow, refuses the query, or a column has a type that is not read.
pub(crate) async fn query(
    client: &impl GenericClient,
    sql: &str,
    arguments: &[&(dyn ToSql + Sync)],
) -> Result<Page, SourceError> {
    let statement = prepare(client, sql).await?;
    run(client, &statement, arguments).await
}

async fn prepare(client: &impl GenericClient, sql: &str) -> Result<Statement, SourceError> {
    let statement = wait(client.prepare(sql)).await?;
    match statement.columns().iter().find_map(unreadable_column) {
        None => Ok(statement),
        Some(why) => Err(SourceError(why)),
    }
}

/// Runs a query, and reads rows until they have [`PAGE_BYTES`] or more; the others are left out. Fails if the server
/// does, or does not answer within 40 s.
async fn run(
    client: &impl GenericClient,
    statement: &Statement,
    arguments: &[&(dyn ToSql + Sync)],
) -> Result<Page, SourceError> {
    let columns = statement.columns().iter().map(|column| column.name().to_owned()).collect();
    let (mut page, mut bytes) = (Page { columns, rows: Vec::new() }, 0);
    let read = async {
        let mut rows = pin!(client.query_raw(statement, arguments.iter().copied()).await?);
        while bytes < PAGE_BYTES
            && let Some(row) = rows.try_next().await?
        {
            let row = read_row(&row);
            bytes += row.iter().map(Value::size).sum::<usize>();
            page.rows.push(row);
        }
        Ok(())
    };
    wait(read).await?;
    Ok(page)
}

/// Awaits an answer of the server, for at most 40 s.
///
/// # Errors
/// The error of the server or the connection, or that there was no answer.
pub(crate) async fn wait<T>(
    answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, SourceError> {
    match timeout(STATEMENT + ANSWER, answered(answer)).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(SourceError(format!("PostgreSQL: {}", describe(&error)))),
        Err(_elapsed) => {
            Err(SourceError(format!("PostgreSQL did not answer within {:?}", STATEMENT + ANSWER)))
        }
    }
}
