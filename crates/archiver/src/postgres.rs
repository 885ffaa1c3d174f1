//! The archive in PostgreSQL, 13 or later. Ends are in partitions by month, which are made ahead and dropped whole.

mod insert;
mod migrations;
mod partitions;
mod tls;

use std::collections::BTreeSet;
use std::error::Error as _;
use std::path::Path;
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use ringback_archive::{EndRow, Sink, SinkError, Written};
use ringback_core::clock::Clock;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_postgres::config::SslMode;
use tokio_postgres::{Client, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use self::partitions::Month;

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(5);
/// How long a statement waits for a lock, such as that of somebody's long query while a partition is made.
const LOCK: Duration = Duration::from_secs(5);
/// How long a batch may take.
const WRITE: Duration = Duration::from_secs(20);

/// A PostgreSQL database.
pub(crate) struct Postgres {
    config: tokio_postgres::Config,
    tls: Option<MakeRustlsConnect>,
    keep: Option<Duration>,
    clock: Arc<dyn Clock>,
    client: Option<Client>,
    /// The task of the connection.
    connection: JoinSet<()>,
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
        // The error of the parser may name a part of the URL, but not the password.
        let mut config = tokio_postgres::Config::from_str(url).context("RINGBACK_ARCHIVE cannot be read")?;
        config.connect_timeout(CONNECT).application_name("ringback-archiver");
        let tls = match config.get_ssl_mode() {
            SslMode::Disable => None,
            _ => Some(tls::connector(authorities)?),
        };
        Ok(Self {
            config,
            tls,
            keep,
            clock,
            client: None,
            connection: JoinSet::new(),
            partitions: BTreeSet::new(),
        })
    }

    async fn connect(&mut self) -> Result<Client, tokio_postgres::Error> {
        // Ends a former connection.
        self.connection.abort_all();
        match &self.tls {
            Some(tls) => {
                let (client, connection) = self.config.connect(tls.clone()).await?;
                self.connection.spawn(async { drop(connection.await) });
                Ok(client)
            }
            None => {
                let (client, connection) = self.config.connect(NoTls).await?;
                self.connection.spawn(async { drop(connection.await) });
                Ok(client)
            }
        }
    }

    async fn connect_and_migrate(&mut self) -> Result<String, Failed> {
        self.partitions.clear();
        let mut client = self.connect().await?;
        // Months begin at midnight in UTC; a statement ends before this process gives up on it.
        let limit = WRITE.as_millis();
        let settings = format!(
            "set time zone 'UTC'; set statement_timeout = {limit}; set lock_timeout = {}",
            LOCK.as_millis()
        );
        client.batch_execute(&settings).await?;
        let version = migrations::run(&mut client).await?;
        let server: String = client.query_one("show server_version", &[]).await?.get(0);
        self.client = Some(client);
        let server = server.split(' ').next().unwrap_or_default();
        Ok(format!("PostgreSQL {server}, schema {version}"))
    }

    async fn write_all(&mut self, rows: &[EndRow]) -> Result<Written, Failed> {
        let Self { client, partitions, .. } = self;
        let client = client.as_mut().ok_or_else(|| Failed::Other("it is not connected".to_owned()))?;
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
        let Self { client, partitions, keep, .. } = self;
        let client = client.as_mut().ok_or_else(|| Failed::Other("it is not connected".to_owned()))?;
        let this = Month::of(now);
        for month in [this, this.next(), this.next().next()] {
            if !partitions.contains(&month) && partitions::ensure(client, month).await? {
                partitions.insert(month);
            }
        }
        if let Some(keep) = keep {
            let before = now.saturating_sub_unsigned(ringback_core::clock::millis(*keep));
            partitions::drop_before(client, before).await?;
        }
        Ok(())
    }

    /// Runs some work within the time that it may take. After an error the connection is made anew.
    fn done<T>(
        &mut self,
        done: Result<Result<T, Failed>, tokio::time::error::Elapsed>,
    ) -> Result<T, SinkError> {
        let done =
            done.unwrap_or_else(|_elapsed| Err(Failed::Other(format!("it did not answer within {WRITE:?}"))));
        done.map_err(|error| {
            self.client = None;
            SinkError(format!("PostgreSQL: {error}"))
        })
    }
}

impl Sink for Postgres {
    async fn prepare(&mut self) -> Result<String, SinkError> {
        let prepared = timeout(WRITE, self.connect_and_migrate()).await;
        self.done(prepared)
    }

    async fn write(&mut self, rows: &[EndRow]) -> Result<Written, SinkError> {
        let written = timeout(WRITE, self.write_all(rows)).await;
        self.done(written)
    }

    async fn maintain(&mut self) -> Result<(), SinkError> {
        let tended = timeout(WRITE, self.tend()).await;
        self.done(tended)
    }
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
            Self::Database(error) => match (error.as_db_error(), error.source()) {
                (Some(error), _) => write!(f, "{} ({})", error.message(), error.code().code()),
                (None, Some(source)) => write!(f, "{error}: {source}"),
                (None, None) => write!(f, "{error}"),
            },
            Self::Other(text) => f.write_str(text),
        }
    }
}
