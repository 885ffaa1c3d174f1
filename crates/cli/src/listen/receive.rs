//! Takes a request: reads its body within bounds, prints it, and answers.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody as _, to_bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use ringback_core::clock::{Clock as _, SystemClock};
use tokio::time::{sleep, timeout};

use super::answers::Answers;
use super::print::{Printer, Received};
use super::server::Connections;

/// The most bytes of a body. Ringback delivers at most half of it.
const MAX_BODY: usize = 512 * 1024;
/// How long a body may take to arrive.
const BODY_WITHIN: Duration = Duration::from_secs(30);
/// The header by which the attempts of a job are recognised.
const WEBHOOK_ID: &str = "webhook-id";

struct Receiver {
    answers: Answers,
    printer: Printer,
    connections: Connections,
}

/// A service that takes every request.
pub(super) fn receiver(answers: Answers, printer: Printer, connections: Connections) -> Router {
    Router::new().fallback(receive).with_state(Arc::new(Receiver { answers, printer, connections }))
}

async fn receive(State(receiver): State<Arc<Receiver>>, request: Request) -> Response {
    let Receiver { answers, printer, connections } = &*receiver;
    let (head, body) = request.into_parts();
    let fits = body.size_hint().exact().is_some_and(|length| length <= MAX_BODY as u64);
    let (body, refused) = match timeout(BODY_WITHIN, to_bytes(body, MAX_BODY)).await {
        Ok(Ok(body)) => (Ok(body), None),
        Ok(Err(_)) if fits => (Err("the body was cut off"), Some(StatusCode::BAD_REQUEST)),
        Ok(Err(_)) => (Err("the body is larger than 512 KiB"), Some(StatusCode::PAYLOAD_TOO_LARGE)),
        Err(_) => (Err("the body did not arrive within 30 s"), Some(StatusCode::REQUEST_TIMEOUT)),
    };
    let status = refused.unwrap_or_else(|| answers.next_status(head.headers.get(WEBHOOK_ID)));
    let path = head.uri.path_and_query().map_or_else(|| head.uri.to_string(), ToString::to_string);
    let (at, method) = (SystemClock.now().to_string(), head.method.to_string());
    printer.print(Received { at, method, path, headers: head.headers, body, status }).await;
    sleep(answers.delay).await;
    let mut response = Response::new(Body::from(answers.body(status)));
    *response.status_mut() = status;
    response.headers_mut().extend(answers.headers.clone());
    // The rest of a body that was not read would be taken for the next request.
    if refused.is_some() || connections.are_short() {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
