//! The HTTP server of the API, the admin port and `ringback listen`: accepts connections until the shutdown, then
//! lets their requests finish for a few seconds. Time limits keep slow clients from holding a connection, or the
//! process, forever.

mod beginning;
mod chunks;
mod client;
mod connections;
mod expected_body;
mod fair_limiter;
mod held_body;
mod pace;
mod requests;
mod streams;
pub(crate) mod tls;
mod watched_body;
mod write_timeout;

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::beginning::Beginning;
use self::client::{Client, Protection, Socket};
use self::connections::Accepted;
pub use self::connections::Connections;
pub use self::fair_limiter::{FairLimiter, Holder, NoPermit, Peer, Permit};
pub use self::held_body::hold_until_taken;
use self::requests::Requests;
use self::streams::Streams;
pub use self::tls::Tls;
use self::write_timeout::WriteTimeout;
use crate::outage::Outage;
use crate::shutdown::Shutdown;
use crate::signals::ReadAgain;

/// How long a client may take to send the head of a request. Also how long a kept-alive connection
/// may be idle.
const HEAD_WITHIN: Duration = Duration::from_secs(75);
/// How long a TLS handshake may take.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// The largest head of a request, and how much of a body is read ahead: what a connection can make this process keep.
const MAX_HEAD: u32 = 32 * 1024;
/// The address that the connection of a request comes from; an extension of the requests that came through [`serve`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAddress(pub std::net::IpAddr);

/// The most requests that a connection of HTTP/2 may have at a time: what RFC 9113, section 6.5.2, recommends at least.
const MAX_STREAMS: u32 = 100;
/// How often an HTTP/2 client is pinged.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// How long requests may take after the shutdown began. Only slow uploads, large batches on a slow
/// store, and long exports take longer.
const LAST_REQUESTS: Duration = Duration::from_secs(5);
/// How long to pause when the system cannot accept another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The connection preface of HTTP/2 (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// How often to check whether the rest of a preface has arrived.
const PEEK_EVERY: Duration = Duration::from_millis(50);

/// Serves HTTP/1.1 and HTTP/2 until the shutdown, or until it is dropped, which ends all connections.
///
/// Takes a router, not any service, so that the server is compiled once. With `tls` the connections speak https.
pub async fn serve(
    listener: TcpListener,
    app: Router,
    allowed: Connections,
    tls: Option<Tls>,
    shutdown: Shutdown,
) {
    let (connections, cut) = (TaskTracker::new(), CancellationToken::new());
    let _cut_when_dropped = cut.clone().drop_guard();
    let mut outage = Outage::new();
    let mut read_again = ReadAgain::listen();
    loop {
        let accepted = tokio::select! {
            biased;
            () = shutdown.stopping() => break,
            () = read_again.next() => {
                if let Some(tls) = &tls {
                    tls.read_again().await;
                }
                continue;
            }
            accepted = allowed.accept(&listener) => accepted,
        };
        match accepted {
            Ok(None) => {}
            Ok(Some(Accepted { stream, peer, wait, held })) => {
                if outage.ends() {
                    tracing::info!("connections are accepted again");
                }
                let address = stream.peer_addr().ok().map(|address| ClientAddress(address.ip()));
                let requests = Requests::new(app.clone(), allowed.clone(), peer, address);
                let serving = connection(stream, requests, tls.clone(), shutdown.clone());
                let (cut, shutdown) = (cut.clone(), shutdown.clone());
                let serving = async move {
                    if !wait.is_zero() {
                        tokio::select! {
                            () = sleep(wait) => {}
                            () = shutdown.stopping() => return,
                        }
                    }
                    serving.await;
                };
                connections.spawn(async move {
                    cut.run_until_cancelled_owned(serving).await;
                    drop(held);
                });
                // Requests of connections that are open go first.
                yield_now().await;
            }
            Err(error) if is_of_the_connection(&error) => {}
            Err(error) => {
                if outage.begins() {
                    tracing::warn!(%error, "cannot accept connections; retrying");
                }
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    connections.close();
    tokio::select! {
        () = connections.wait() => {}
        () = sleep(LAST_REQUESTS) => {}
        () = shutdown.expired() => {}
    }
    cut.cancel();
    connections.wait().await;
}

async fn connection(stream: TcpStream, requests: Requests, tls: Option<Tls>, shutdown: Shutdown) {
    // Until the system was asked for events, nothing is known of a client that has left already.
    yield_now().await;
    // Responses are small; without this they would be delayed.
    stream.set_nodelay(true).ok();
    let stalled_for = requests.stalled_for();
    let Some(tls) = tls else {
        let known = tokio::select! {
            known = timeout(HEAD_WITHIN, http_version_is_known(&stream)) => known,
            () = shutdown.stopping() => return,
        };
        if matches!(known, Ok(Ok(()))) {
            let (socket, client) = Socket::new(stream, Protection::Plain);
            let stream = WriteTimeout::new(socket, stalled_for);
            http(builder(stalled_for), stream, (requests, client), shutdown).await;
        }
        return;
    };
    let (socket, client) = Socket::new(stream, Protection::Tls);
    let handshake = async { tls.acceptor().await.accept(socket).await };
    let stream = tokio::select! {
        ended = timeout(HANDSHAKE_WITHIN, handshake) => match ended {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!(%error, "a TLS handshake failed"),
            Err(_) => return tracing::debug!("a TLS handshake took too long"),
        },
        () = shutdown.stopping() => return,
    };
    if stream.get_ref().1.alpn_protocol() == Some(tls::HTTP_2) {
        let beginning = Beginning::new(PREFACE.len(), HEAD_WITHIN);
        let stream = WriteTimeout::new(stream, stalled_for).with_beginning(beginning);
        http(builder(stalled_for).http2_only(), stream, (requests, client), shutdown).await;
    } else {
        let stream = WriteTimeout::new(stream, stalled_for);
        http(builder(stalled_for).http1_only(), stream, (requests, client), shutdown).await;
    }
}

/// What serves a connection, with its limits.
fn builder(stalled_for: Duration) -> Builder<Streams> {
    let mut builder = Builder::new(Streams { stalled_for });
    // A client that has closed its sending half is answered; `Client` sees whether it is gone.
    builder
        .http1()
        .half_close(true)
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_buf_size(MAX_HEAD as usize);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(KEEP_ALIVE)
        .max_header_list_size(MAX_HEAD)
        .max_concurrent_streams(MAX_STREAMS);
    builder
}

/// Serves the requests of a connection.
async fn http<S>(
    builder: Builder<Streams>,
    stream: WriteTimeout<S>,
    (requests, client): (Requests, Arc<Client>),
    shutdown: Shutdown,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request| requests.clone().answer(request, Arc::clone(&client)));
    let mut serving = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        () = shutdown.stopping() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection failed");
    }
}

/// Waits until the first bytes show the client's HTTP version. The server waits for them too, but
/// without a time limit.
async fn http_version_is_known(stream: &TcpStream) -> io::Result<()> {
    let mut start = [0; PREFACE.len()];
    loop {
        let length = stream.peek(&mut start).await?;
        let is_part = length < PREFACE.len() && PREFACE.starts_with(&start[..length]);
        if !is_part || length == 0 {
            return Ok(());
        }
        sleep(PEEK_EVERY).await;
    }
}

/// Whether an error concerns only the connection that was being accepted.
fn is_of_the_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

#[cfg(test)]
mod tests;
