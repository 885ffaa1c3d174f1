//! Why no connection to a server could be made, where the Redis client does not tell: what the server said when it
//! refused a login, whether a certificate is the reason, and what a server is that is not Redis.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use redis::{Client, ConnectionAddr, ErrorKind, RedisConnectionInfo, RedisError, Value};
use ringback_core::store_types::StoreError;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::CONNECT;

/// How long a server may take for the first bytes of its answer.
const FIRST_WORDS: Duration = Duration::from_millis(500);
/// How many bytes of the answer are read, and how many are shown.
const READ: usize = 512;
const SHOWN: usize = 80;
/// The request for TLS with which a client of PostgreSQL begins. The answer is one letter.
const POSTGRES_TLS: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// Returns an error as it is, except for a refused login: that one is tried again, for the server's own words.
pub(super) async fn in_its_words(client: &Client, error: RedisError) -> RedisError {
    if error.kind() != ErrorKind::AuthenticationFailed {
        return error;
    }
    let info = client.get_connection_info().clone();
    let mut auth = redis::cmd("AUTH");
    auth.arg(info.redis_settings().username()).arg(info.redis_settings().password());
    let ask = async {
        let anonymous = Client::open(info.set_redis_settings(RedisConnectionInfo::default()))?;
        anonymous.get_multiplexed_async_connection().await?.send_packed_command(&auth).await
    };
    match timeout(CONNECT, ask).await {
        Ok(Ok(Value::ServerError(words))) => words.into(),
        _ => error,
    }
}

/// Whether TLS failed because one side rejected the other's certificate.
pub(super) fn is_of_certificate(error: &RedisError) -> bool {
    let source = error.source().and_then(|source| source.downcast_ref::<Arc<dyn Error + Send + Sync>>());
    let inner = source.and_then(|source| source.downcast_ref::<io::Error>()).and_then(io::Error::get_ref);
    let tls = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>());
    use rustls::AlertDescription::{
        AccessDenied, BadCertificate, CertificateExpired, CertificateRequired, CertificateRevoked,
        CertificateUnknown, UnknownCA, UnsupportedCertificate,
    };
    match tls {
        Some(rustls::Error::InvalidCertificate(_)) => true,
        Some(rustls::Error::AlertReceived(alert)) => matches!(
            alert,
            AccessDenied
                | BadCertificate
                | CertificateExpired
                | CertificateRequired
                | CertificateRevoked
                | CertificateUnknown
                | UnknownCA
                | UnsupportedCertificate
        ),
        _ => false,
    }
}

/// Connects anew and returns, as `Unauthorized`, what the server at an address is if not Redis, or why it denies access.
/// `None` if it answers like Redis, or does not answer.
pub(super) async fn of(address: &ConnectionAddr) -> Option<StoreError> {
    let (host, port, has_tls) = match address {
        ConnectionAddr::Tcp(host, port) => (host, *port, false),
        ConnectionAddr::TcpTls { host, port, .. } => (host, *port, true),
        _ => return None,
    };
    let said = first_words(host, port, b"PING\r\n").await?;
    let what = match &said[..] {
        [b'+' | b'-', ..] if has_tls => "it speaks Redis without TLS: use redis://".to_owned(),
        [b'-', b'D', b'E', b'N', b'I', b'E', b'D', ..] => line(&said[1..]),
        [b'+' | b'-', ..] => return None,
        [0x15, 0x03, ..] if has_tls => return None,
        [0x15, 0x03, ..] => "it speaks TLS: use rediss://".to_owned(),
        [b'H', b'T', b'T', b'P', b'/', ..] => format!("it is not Redis, it speaks HTTP: {}", line(&said)),
        [] => match first_words(host, port, &POSTGRES_TLS).await?[..] {
            [b'S' | b'N', ..] => "it is not Redis, it is PostgreSQL".to_owned(),
            _ => return None,
        },
        _ => format!("it is not Redis, its first words are: {}", shown(&said)),
    };
    Some(StoreError::Unauthorized(Arc::new(io::Error::other(format!("{host}:{port}: {what}")))))
}

/// Sends bytes to a server. Returns the first bytes of the answer, empty after a close; `None` if none come.
async fn first_words(host: &str, port: u16, question: &[u8]) -> Option<Vec<u8>> {
    let asked = async {
        let mut stream = TcpStream::connect((host, port)).await?;
        stream.write_all(question).await?;
        let mut said = vec![0; READ];
        let length = match timeout(FIRST_WORDS, stream.read(&mut said)).await {
            Ok(read) => read.unwrap_or(0),
            Err(_elapsed) => return Err(io::ErrorKind::TimedOut.into()),
        };
        said.truncate(length);
        Ok::<_, io::Error>(said)
    };
    timeout(CONNECT, asked).await.ok()?.ok()
}

/// Returns the first line of an answer as text, shortened.
fn line(said: &[u8]) -> String {
    let first = said.split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default();
    shown(first)
}

fn shown(said: &[u8]) -> String {
    said[..said.len().min(SHOWN)].escape_ascii().to_string()
}
