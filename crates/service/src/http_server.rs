//! The HTTP server of the API, the admin port and `ringback listen`: accepts connections until the shutdown, then
//! lets their requests finish for a few seconds. Time limits keep slow clients from holding a connection, or the
//! process, forever.

mod client;
mod connections;
mod expected_body;
mod fair_limiter;
mod held_body;
mod pace;
mod requests;
pub(crate) mod tls;
mod watched_body;
mod write_timeout;

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::client::{Client, Protection, Socket};
use self::connections::Accepted;
pub use self::connections::Connections;
pub use self::fair_limiter::{FairLimiter, Holder, NoPermit, Peer, Permit};
pub use self::held_body::hold_until_taken;
use self::requests::Requests;
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
/// A head of this size is read, one of twice the size is refused. Also how much of a body is read ahead.
const MAX_HEAD: usize = 32 * 1024;

/// The address that the connection of a request comes from; an extension of the requests that came through [`serve`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAddress(pub std::net::IpAddr);

/// How long requests may take after the shutdown began. Only slow uploads, large batches on a slow
/// store, and long exports take longer.
const LAST_REQUESTS: Duration = Duration::from_secs(5);
/// How long to pause when the system cannot accept another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Serves HTTP/1.1 until the shutdown, then requests under way for up to 5 s. Dropping it ends all connections.
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
    let Some(tls) = tls else {
        let (socket, client) = Socket::new(stream, Protection::Plain);
        return http(socket, (requests, client), shutdown).await;
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
    http(stream, (requests, client), shutdown).await;
}

/// Serves the requests of a connection until its end. At the shutdown only the request that is under way is answered.
async fn http<S>(stream: S, (requests, client): (Requests, Arc<Client>), shutdown: Shutdown)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = Builder::new();
    // A client that has closed its sending half is answered; `Client` sees whether it is gone.
    builder.half_close(true).timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN).max_buf_size(MAX_HEAD);
    let stream = TokioIo::new(WriteTimeout::new(stream, requests.stalled_for()));
    let service = service_fn(move |request| requests.clone().answer(request, Arc::clone(&client)));
    let mut serving = pin!(builder.serve_connection(stream, service));
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

/// Whether an error concerns only the connection that was being accepted.
fn is_of_the_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

#[cfg(test)]
mod tests;
