//! The connections of a receiver: HTTP/1.1, a bounded number at a time, each with time limits.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// The most connections at a time. More wait until one ends.
const MAX_CONNECTIONS: usize = 256;
/// With fewer free connections than this, none is kept alive after its answer.
const SHORT: usize = 64;
/// How long a client may take to send the head of a request, and how long a connection may be idle.
const HEAD_WITHIN: Duration = Duration::from_secs(60);
/// How long to pause when the system cannot accept another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The free connections.
#[derive(Clone)]
pub(super) struct Connections(Arc<Semaphore>);

impl Connections {
    /// Whether few are left.
    pub(super) fn are_short(&self) -> bool {
        self.0.available_permits() < SHORT
    }
}

/// Serves until it is dropped, which ends all connections.
pub(super) async fn serve(listener: TcpListener, app: impl FnOnce(Connections) -> Router) -> Infallible {
    let free = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let app = app(Connections(Arc::clone(&free)));
    let mut connections = JoinSet::new();
    loop {
        let permit = Arc::clone(&free).acquire_owned().await.expect("it is never closed");
        match listener.accept().await {
            Ok((stream, _)) => {
                let app = app.clone();
                connections.spawn(async move {
                    connection(stream, app).await;
                    drop(permit);
                });
            }
            Err(_) => sleep(ACCEPT_PAUSE).await,
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn connection(stream: TcpStream, app: Router) {
    stream.set_nodelay(true).ok();
    let mut builder = Builder::new(TokioExecutor::new()).http1_only();
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN);
    // A client may disconnect; other connections are not affected.
    builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(app)).await.ok();
}
