//! A PostgreSQL server, and connections to it.

use std::path::Path;
use std::str::FromStr as _;
use std::time::Duration;

use anyhow::Context as _;
use tokio::task::JoinSet;
use tokio_postgres::config::SslMode;
use tokio_postgres::{Client, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::tls;

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(5);

/// How to reach the server.
#[derive(Clone)]
pub(super) struct Server {
    config: tokio_postgres::Config,
    tls: Option<MakeRustlsConnect>,
}

/// A connection, which ends when it is dropped.
pub(super) struct Connection {
    pub(super) client: Client,
    _task: JoinSet<()>,
}

impl Server {
    /// Reads the URL, and does not connect.
    ///
    /// # Errors
    /// If the URL or the file of authorities cannot be read. The message does not have the URL.
    pub(super) fn new(url: &str, authorities: Option<&Path>) -> anyhow::Result<Self> {
        // The error of the parser may name a part of the URL, but not the password.
        let mut config = tokio_postgres::Config::from_str(url).context("RINGBACK_ARCHIVE cannot be read")?;
        config.connect_timeout(CONNECT).application_name("ringback-archiver");
        let tls = match config.get_ssl_mode() {
            SslMode::Disable => None,
            _ => Some(tls::connector(authorities)?),
        };
        Ok(Self { config, tls })
    }

    /// Connects. A statement ends before this process gives up on it.
    pub(super) async fn connect(
        &self,
        statement: Duration,
        lock: Duration,
    ) -> Result<Connection, tokio_postgres::Error> {
        let mut task = JoinSet::new();
        let client = match &self.tls {
            Some(tls) => {
                let (client, connection) = self.config.connect(tls.clone()).await?;
                task.spawn(async { drop(connection.await) });
                client
            }
            None => {
                let (client, connection) = self.config.connect(NoTls).await?;
                task.spawn(async { drop(connection.await) });
                client
            }
        };
        // Months begin at midnight in UTC.
        let settings = format!(
            "set time zone 'UTC'; set statement_timeout = {}; set lock_timeout = {}",
            statement.as_millis(),
            lock.as_millis()
        );
        client.batch_execute(&settings).await?;
        Ok(Connection { client, _task: task })
    }
}
