//! A PostgreSQL server, and connections to it.

use std::error::Error as _;
use std::future::poll_fn;
use std::path::Path;
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_postgres::config::SslMode;
use tokio_postgres::{AsyncMessage, Client, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::tls;

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(5);

/// How to reach the server.
#[derive(Clone)]
pub struct Server {
    config: tokio_postgres::Config,
    tls: Option<MakeRustlsConnect>,
}

/// For how long the server works for a connection.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The longest statement.
    pub statement: Duration,
    /// The longest wait for a lock.
    pub lock: Duration,
}

/// A connection, which ends when it is dropped.
pub struct Connection {
    /// Sends statements.
    pub client: Client,
    notified: Arc<Notify>,
    _task: JoinSet<()>,
}

impl Connection {
    /// Waits for a notification of a channel that this connection listens to, or for the end of the connection. One that has
    /// come since the last wait is not missed.
    pub async fn notified(&self) {
        self.notified.notified().await;
    }
}

impl Server {
    /// Reads the URL, and does not connect. `name` is the name of the process, which the server shows, and `setting` that of
    /// what has the URL.
    ///
    /// # Errors
    /// If the URL or the file of authorities cannot be read. The message does not have the URL.
    pub fn new(url: &str, authorities: Option<&Path>, name: &str, setting: &str) -> anyhow::Result<Self> {
        // The error of the parser may name a part of the URL, but not the password.
        let config = tokio_postgres::Config::from_str(url);
        let mut config = config.with_context(|| format!("{setting} cannot be read"))?;
        config.connect_timeout(CONNECT).application_name(name);
        let tls = match config.get_ssl_mode() {
            SslMode::Disable => None,
            _ => Some(tls::connector(authorities)?),
        };
        Ok(Self { config, tls })
    }

    /// Checks a URL.
    ///
    /// # Errors
    /// What is wrong with it, without the password.
    pub fn check(url: &str) -> Result<(), String> {
        let Err(error) = tokio_postgres::Config::from_str(url) else { return Ok(()) };
        let cause = error.source().map(ToString::to_string);
        Err(cause.unwrap_or_else(|| error.to_string()))
    }

    /// Connects. A statement ends before this process gives up on it. The time zone is UTC.
    ///
    /// # Errors
    /// If the server cannot be reached, or refuses the connection.
    pub async fn connect(&self, limits: Limits) -> Result<Connection, tokio_postgres::Error> {
        let (mut task, notified) = (JoinSet::new(), Arc::new(Notify::new()));
        let client = match &self.tls {
            Some(tls) => {
                let (client, connection) = self.config.connect(tls.clone()).await?;
                task.spawn(keep(connection, Arc::clone(&notified)));
                client
            }
            None => {
                let (client, connection) = self.config.connect(NoTls).await?;
                task.spawn(keep(connection, Arc::clone(&notified)));
                client
            }
        };
        let settings = format!(
            "set time zone 'UTC'; set statement_timeout = {}; set lock_timeout = {}",
            limits.statement.as_millis(),
            limits.lock.as_millis()
        );
        client.batch_execute(&settings).await?;
        Ok(Connection { client, notified, _task: task })
    }
}

/// An error as text: the message and the code of the server, or what has kept it from answering.
#[must_use]
pub fn describe(error: &tokio_postgres::Error) -> String {
    match (error.as_db_error(), error.source()) {
        (Some(error), _) => format!("{} ({})", error.message(), error.code().code()),
        (None, Some(source)) => format!("{error}: {source}"),
        (None, None) => error.to_string(),
    }
}

/// Sends and receives for a connection, and notes its notifications and its end.
async fn keep<S, T>(mut connection: tokio_postgres::Connection<S, T>, notified: Arc<Notify>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    // An error is that of the statements, which fail then.
    while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
        if matches!(message, AsyncMessage::Notification(_)) {
            notified.notify_one();
        }
    }
    notified.notify_one();
}
