//! A PostgreSQL server and connections to it, with limits for statements and with notifications; errors as text.

use std::error::Error as _;
use std::future::poll_fn;
use std::path::Path;
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use ringback_core::connection_url::{PostgresUrl, SslMode as UrlSslMode};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_postgres::config::SslMode;
use tokio_postgres::{AsyncMessage, Client, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::tls;

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(5);

/// The server and the settings to connect to it.
#[derive(Clone)]
pub struct Server {
    config: tokio_postgres::Config,
    tls: Option<MakeRustlsConnect>,
}

/// For how long the server works for a connection.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
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
    /// Waits for a notification of a channel that this connection listens to, or for the end of the connection. One
    /// that has come since the last wait is not missed.
    pub async fn notified(&self) {
        self.notified.notified().await;
    }
}

impl Server {
    /// Reads the URL, and does not connect. `name` is the name of the process, which the server shows unless the URL has
    /// another one; `authorities` are those of the process, unless the URL has others.
    ///
    /// # Errors
    /// If the URL or a file of certificates cannot be read. The message has no secrets.
    pub fn new(url: &str, authorities: Option<&Path>, name: &str) -> Result<Self, String> {
        let url = PostgresUrl::parse(url)?;
        // The client has no other way to set most of them by name.
        let settings = url.settings.iter().map(|(name, value)| format!("{name}={} ", quoted(value)));
        let config = tokio_postgres::Config::from_str(&settings.collect::<String>());
        let mut config = config.map_err(|_| "cannot be read".to_owned())?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        if config.get_application_name().is_none() {
            config.application_name(name);
        }
        config.ssl_mode(match url.ssl_mode {
            UrlSslMode::Disable => SslMode::Disable,
            UrlSslMode::Prefer => SslMode::Prefer,
            UrlSslMode::VerifyFull | UrlSslMode::VerifyCa => SslMode::Require,
        });
        let tls = match url.ssl_mode {
            UrlSslMode::Disable => None,
            _ => Some(tls::connector(&url, authorities)?),
        };
        Ok(Self { config, tls })
    }

    /// Connects, and limits how long the server works on a statement and waits for a lock. The time zone is UTC.
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

/// A value as the client reads it behind the name of a setting.
fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// An error as text: the message and the code of the server, or else the error of the client with its cause.
#[must_use]
pub fn describe(error: &tokio_postgres::Error) -> String {
    match (error.as_db_error(), error.source()) {
        (Some(error), _) => format!("{} ({})", error.message(), error.code().code()),
        (None, Some(source)) => format!("{error}: {source}"),
        (None, None) => error.to_string(),
    }
}

/// Sends and receives for a connection. Wakes [`Connection::notified`] at each notification and at the end.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_a_url_reach_the_client_as_they_are() {
        let url = "postgres://u:it's%5C%20%23@a,b:6543/d?options=-c%20x%3D1&application_name=mine&connect_timeout=3";
        let server = Server::new(url, None, "ringback").unwrap();
        assert_eq!(server.config.get_password(), Some(&b"it's\\ #"[..]));
        assert_eq!(server.config.get_ports(), [5432, 6543]);
        assert_eq!(server.config.get_options(), Some("-c x=1"));
        assert_eq!(server.config.get_application_name(), Some("mine"));
        assert_eq!(server.config.get_connect_timeout(), Some(&Duration::from_secs(3)));
        let server = Server::new("postgres://u@h/d", None, "ringback").unwrap();
        assert_eq!(server.config.get_application_name(), Some("ringback"));
    }

    #[test]
    fn a_file_of_certificates_that_cannot_be_read_is_named() {
        for (options, named) in [
            ("sslmode=verify-full&sslrootcert=/nowhere/ca.pem", "/nowhere/ca.pem (sslrootcert)"),
            ("sslcert=/nowhere/c.pem&sslkey=/nowhere/k.pem", "/nowhere/c.pem (sslcert)"),
        ] {
            let why = Server::new(&format!("postgres://u:s3cret@h/d?{options}"), None, "ringback").err();
            assert!(
                why.as_ref().is_some_and(|why| why.contains(named) && !why.contains("s3cret")),
                "{why:?}"
            );
        }
        let why = Server::new("postgres://u@h/d", Some(Path::new("/dev/null")), "ringback").err();
        assert!(why.is_some_and(|why| why.contains("RINGBACK_CA_FILE") && why.contains("no certificate")));
    }
}
