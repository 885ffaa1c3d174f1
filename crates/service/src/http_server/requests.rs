//! The requests of a connection: each knows its peer, names one host, and ends when its client is gone.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, HOST};
use axum::http::{Request, Response, StatusCode, Version};
use axum::response::IntoResponse as _;
use hyper::body::Incoming;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use ringback_wire::Problem;

use super::ClientAddress;
use super::client::{Client, Gone};
use super::connections::Connections;
use super::expected_body::Expected;
use super::fair_limiter::Peer;
use super::watched_body::watched;

/// Answers the requests of a connection.
#[derive(Clone)]
pub(super) struct Requests {
    app: TowerToHyperService<Router>,
    allowed: Connections,
    peer: Peer,
    address: Option<ClientAddress>,
}

impl Requests {
    pub(super) fn new(app: Router, allowed: Connections, peer: Peer, address: Option<ClientAddress>) -> Self {
        Self { app: TowerToHyperService::new(app), allowed, peer, address }
    }

    /// How long their client may read nothing of an answer.
    pub(super) fn stalled_for(&self) -> Duration {
        self.allowed.stalled_for()
    }

    /// Answers a request, which gets peer and address. One of HTTP/1.1 without exactly one Host header gets a 400.
    ///
    /// # Errors
    /// If its client is gone.
    pub(super) async fn answer(
        self,
        mut request: Request<Incoming>,
        client: Arc<Client>,
    ) -> Result<Response<Body>, Gone> {
        request.extensions_mut().insert(self.peer);
        if let Some(address) = self.address {
            request.extensions_mut().insert(address);
        }
        let hosts = request.headers().get_all(HOST).iter().count();
        if request.version() == Version::HTTP_11 && hosts != 1 {
            return Ok(no_single_host(hosts));
        }
        let (expected, request) = Expected::of(request);
        let call = async { self.app.call(request).await.unwrap_or_else(|never| match never {}) };
        let answer = client.unless_gone(call).await?;
        Ok(watched(expected.finish(answer), client))
    }
}

/// The answer to a request of HTTP/1.1 that does not name exactly one host (RFC 9112, section 3.2). Of two, a proxy in
/// front of the server and the server itself could choose different ones.
fn no_single_host(hosts: usize) -> Response<Body> {
    let detail = format!("the request has {hosts} Host headers; HTTP/1.1 asks for exactly one");
    let problem = Problem::new(StatusCode::BAD_REQUEST, detail);
    let body = serde_json::to_vec(&problem).expect("plain data always serialises");
    (StatusCode::BAD_REQUEST, [(CONTENT_TYPE, "application/problem+json")], body).into_response()
}
