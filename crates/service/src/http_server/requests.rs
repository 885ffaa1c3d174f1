//! The requests of a connection: each knows its peer, and over HTTP/2 each holds a permit until its answer has been
//! taken by the client.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, HOST, RETRY_AFTER};
use axum::http::{Request, Response, StatusCode, Version};
use axum::response::IntoResponse as _;
use hyper::body::Incoming;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use ringback_core::wire::Problem;

use super::ClientAddress;
use super::client::{Client, Gone};
use super::connections::Connections;
use super::expected_body::Expected;
use super::fair_limiter::{NoPermit, Peer};
use super::streams::Pieces;
use super::watched_body::watched;

/// What answers the requests of a connection.
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

    /// Answers a request.
    ///
    /// # Errors
    /// If its client is gone. Over HTTP/2 the connection itself notices that, since it reads all the time.
    pub(super) async fn answer(
        self,
        mut request: Request<Incoming>,
        client: Arc<Client>,
    ) -> Result<Response<Body>, Gone> {
        request.extensions_mut().insert(self.peer);
        if let Some(address) = self.address {
            request.extensions_mut().insert(address);
        }
        if request.version() != Version::HTTP_2 {
            let hosts = request.headers().get_all(HOST).iter().count();
            if request.version() == Version::HTTP_11 && hosts != 1 {
                return Ok(no_single_host(hosts));
            }
            let (expected, request) = Expected::of(request);
            let answer = client.unless_gone(self.call(request)).await?;
            return Ok(watched(expected.finish(answer), client));
        }
        let (answer, permit) = match self.allowed.begin_request(self.peer) {
            Ok(permit) => (self.call(request.map(Body::new)).await, permit),
            Err(why) => (refusal(why), None),
        };
        Ok(answer.map(|body| Body::new(Pieces::new(body, permit))))
    }

    async fn call(&self, request: Request<Body>) -> Response<Body> {
        self.app.call(request).await.unwrap_or_else(|never| match never {})
    }
}

/// The answer to a request too many.
fn refusal(why: NoPermit) -> Response<Body> {
    let detail = match why {
        NoPermit::AllTaken => "too many requests at once: nothing was done; retry later".to_owned(),
        NoPermit::HolderHas(held) => format!(
            "your address has {held} requests over HTTP/2 under way, which is all that one may have: nothing was done; retry later"
        ),
    };
    ([(RETRY_AFTER, "1")], problem(StatusCode::SERVICE_UNAVAILABLE, detail)).into_response()
}

/// The answer to a request of HTTP/1.1 that does not name exactly one host (RFC 9112, section 3.2). A proxy before the
/// server and the server itself could take one of two for the host, and each another one.
fn no_single_host(hosts: usize) -> Response<Body> {
    let detail = format!("the request has {hosts} Host headers; HTTP/1.1 asks for exactly one");
    problem(StatusCode::BAD_REQUEST, detail)
}

fn problem(status: StatusCode, detail: String) -> Response<Body> {
    let body = serde_json::to_vec(&Problem::new(status, detail)).expect("plain data always serialises");
    (status, [(CONTENT_TYPE, "application/problem+json")], body).into_response()
}
