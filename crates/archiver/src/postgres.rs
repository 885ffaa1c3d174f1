//! The sink that writes the archive to PostgreSQL, 13 or later: ended jobs, in partitions by month that are made ahead
//! and dropped whole, and the audit log. Connects, writes and maintains; `history` reads.

mod audit_log;
mod erase;
mod history;
mod insert;
mod partitions;
mod schema;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ringback_archive::{AuditEntryRow, EndedJobRow, Sink, SinkError, WriteResult};
use ringback_core::clock::{Clock, MAX_DIFFERENCE};
use ringback_postgres::{Connection, Limits, Server, describe};
use tokio::time::timeout;
use tokio_postgres::Client;

pub(crate) use self::history::PostgresHistory;
use self::partitions::Month;
use crate::schema::VERSION;

/// How long a statement waits for a lock, such as that of somebody's long query while a partition is made.
const LOCK: Duration = Duration::from_secs(5);
/// How long a batch may take.
const WRITE: Duration = Duration::from_secs(20);
const LIMITS: Limits = Limits { statement: WRITE, lock: LOCK };
/// The application name that the server shows for connections.
const NAME: &str = "ringback-archiver";

/// A PostgreSQL database.
pub(crate) struct Postgres {
    server: Server,
    keep: Option<Duration>,
    clock: Arc<dyn Clock>,
    connection: Option<Connection>,
    /// The months whose partitions are known to be there, or cannot be made.
    partitions: BTreeSet<Month>,
}

impl Postgres {
    /// Reads the URL, and does not connect.
    ///
    /// # Errors
    /// If the URL or the file of authorities cannot be read. The message does not have the URL.
    pub(crate) fn new(
        url: &str,
        authorities: Option<&Path>,
        keep: Option<Duration>,
        clock: Arc<dyn Clock>,
    ) -> anyhow::Result<Self> {
        let server = Server::new(url, authorities, NAME).map_err(anyhow::Error::msg)?;
        Ok(Self { server, keep, clock, connection: None, partitions: BTreeSet::new() })
    }

    async fn connect(&mut self) -> Result<String, Failed> {
        // Ends a former connection.
        self.connection = None;
        self.partitions.clear();
        let mut connection = self.server.connect(LIMITS).await?;
        schema::make(&mut connection.client).await?;
        let server: String = connection.client.query_one("show server_version", &[]).await?.get(0);
        self.connection = Some(connection);
        let server = server.split(' ').next().unwrap_or_default();
        Ok(format!("PostgreSQL {server}, schema {VERSION}"))
    }

    fn client(connection: &mut Option<Connection>) -> Result<&mut Client, Failed> {
        let connected = connection.as_mut().map(|connection| &mut connection.client);
        connected.ok_or_else(|| Failed::Other("it is not connected".to_owned()))
    }

    async fn write_all(&mut self, rows: &[EndedJobRow]) -> Result<WriteResult, Failed> {
        let Self { connection, partitions, .. } = self;
        let client = Self::client(connection)?;
        if rows.is_empty() {
            client.simple_query("").await?;
            return Ok(WriteResult::default());
        }
        for month in rows.iter().map(|row| Month::of(row.finished_at)).collect::<BTreeSet<_>>() {
            if !partitions.contains(&month) {
                partitions::ensure(client, month).await?;
                // Also if it could not be made: then rows of this month go to the default partition.
                partitions.insert(month);
            }
        }
        insert::insert(client, rows).await
    }

    async fn tend(&mut self) -> Result<(), Failed> {
        let now = i64::try_from(self.clock.now().as_millis()).unwrap_or(i64::MAX);
        let Self { connection, partitions, keep, .. } = self;
        let client = Self::client(connection)?;
        let server: f64 = client.query_one("select extract(epoch from now())::float8", &[]).await?.get(0);
        let is_sure = (server * 1000.0 - now as f64).abs() <= MAX_DIFFERENCE.as_secs_f64() * 1000.0;
        if is_sure {
            erase::forget_before(client, now).await?;
        } else {
            tracing::warn!("nothing is removed from the archive: the clock of PostgreSQL is another one");
        }
        let this = Month::of(now);
        for month in [this, this.next(), this.next().next()] {
            if !partitions.contains(&month) && partitions::ensure(client, month).await? {
                partitions.insert(month);
            }
        }
        if let Some(keep) = keep.filter(|_| is_sure) {
            let before = now.saturating_sub_unsigned(ringback_core::clock::millis(keep));
            partitions::drop_before(client, before).await?;
            audit_log::remove_before(client, before).await?;
        }
        Ok(())
    }

    /// Turns the result of some work into that of a sink; `Elapsed` means that it took longer than [`WRITE`]. Drops the
    /// connection after an error, so that the next `prepare` makes another.
    fn done<T>(
        &mut self,
        done: Result<Result<T, Failed>, tokio::time::error::Elapsed>,
    ) -> Result<T, SinkError> {
        let done = done.unwrap_or_else(|_elapsed| Err(too_slow(WRITE)));
        done.map_err(|error| {
            self.connection = None;
            SinkError(format!("PostgreSQL: {error}"))
        })
    }
}

impl Sink for Postgres {
    async fn prepare(&mut self) -> Result<String, SinkError> {
        let prepared = timeout(WRITE, self.connect()).await;
        self.done(prepared)
    }

    async fn write(&mut self, rows: &[EndedJobRow]) -> Result<WriteResult, SinkError> {
        let written = timeout(WRITE, self.write_all(rows)).await;
        self.done(written)
    }

    async fn write_audit_log(&mut self, rows: &[AuditEntryRow]) -> Result<WriteResult, SinkError> {
        let written = match Self::client(&mut self.connection) {
            Ok(client) => timeout(WRITE, insert::insert(client, rows)).await,
            Err(error) => Ok(Err(error)),
        };
        self.done(written)
    }

    async fn maintain(&mut self) -> Result<(), SinkError> {
        let tended = timeout(WRITE, self.tend()).await;
        self.done(tended)
    }
}

fn too_slow(limit: Duration) -> Failed {
    Failed::Other(format!("it did not answer within {limit:?}"))
}

/// Why something failed.
#[derive(Debug)]
enum Failed {
    Database(tokio_postgres::Error),
    Other(String),
}

impl From<tokio_postgres::Error> for Failed {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error)
    }
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Database(error) => f.write_str(&describe(error)),
            Self::Other(text) => f.write_str(text),
        }
    }
}
