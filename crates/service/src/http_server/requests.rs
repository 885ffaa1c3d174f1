//! The requests of a connection: each knows its peer, and over HTTP/2 each holds a place until its answer has been
//! taken by the client.

use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{Request, Response, StatusCode, Version};
use axum::response::IntoResponse as _;
use hyper::body::Incoming;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use ringback_core::wire::Problem;

use super::ClientAddress;
use super::connections::Connections;
use super::places::{NoPlace, Peer};
use super::streams::Pieces;

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

    pub(super) async fn answer(self, mut request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
        request.extensions_mut().insert(self.peer);
        if let Some(address) = self.address {
            request.extensions_mut().insert(address);
        }
        if request.version() != Version::HTTP_2 {
            return self.app.call(request).await;
        }
        let (answer, place) = match self.allowed.begin_request(self.peer) {
            Ok(place) => (self.app.call(request).await?, place),
            Err(why) => (refusal(why), None),
        };
        Ok(answer.map(|body| Body::new(Pieces::new(body, place))))
    }
}

/// The answer to a request too many.
fn refusal(why: NoPlace) -> Response<Body> {
    let detail = match why {
        NoPlace::AllTaken => "too many requests at once: nothing was done; retry later".to_owned(),
        NoPlace::ClaimantHas(held) => format!(
            "your address has {held} requests over HTTP/2 under way, which is all that one may have: nothing was done; retry later"
        ),
    };
    let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail);
    let body = serde_json::to_vec(&problem).expect("plain data always serialises");
    let headers = [(CONTENT_TYPE, "application/problem+json"), (RETRY_AFTER, "1")];
    (StatusCode::SERVICE_UNAVAILABLE, headers, body).into_response()
}
