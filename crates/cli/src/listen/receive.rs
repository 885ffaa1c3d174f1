//! Handles a request of a receiver: reads its body within limits of size and time, prints it, and answers, unless the
//! sender is gone.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use futures_util::StreamExt as _;
use http::request::Parts;
use http::{HeaderValue, StatusCode, header};
use ringback_core::clock::{Clock as _, SystemClock};
use ringback_service::http_server::Connections;
use tokio::time::{sleep, timeout};

use super::answers::Answers;
use super::print::{Printer, Received};

/// The most bytes of a body. Ringback delivers at most half of it.
const MAX_BODY: usize = 512 * 1024;
/// How long a body may take to arrive.
const BODY_WITHIN: Duration = Duration::from_secs(30);
/// The most connections at a time. More wait until one ends.
pub(super) const MAX_CONNECTIONS: usize = 256;
/// With fewer free connections than this, none is kept alive after its answer.
const SHORT: usize = 64;
/// The header by which the attempts of a job are recognised.
const WEBHOOK_ID: &str = "webhook-id";

/// The answer to a request whose body was not read to its end, and the reason.
type Refusal = (StatusCode, &'static str);

const TOO_LARGE: Refusal = (StatusCode::PAYLOAD_TOO_LARGE, "the body is larger than 512 KiB");
const TOO_SLOW: Refusal = (StatusCode::REQUEST_TIMEOUT, "the body did not arrive within 30 s");
const INCOMPLETE: Refusal = (StatusCode::BAD_REQUEST, "the body is incomplete");
/// The error of a request whose sender has closed the connection early. It is printed and not answered.
const GONE: &str = "the connection ended before the request was whole";

struct Receiver {
    answers: Answers,
    printer: Printer,
    connections: Connections,
}

/// A service that accepts requests of every method and path.
pub(super) fn receiver(answers: Answers, printer: Printer, connections: Connections) -> Router {
    Router::new().fallback(receive).with_state(Arc::new(Receiver { answers, printer, connections }))
}

async fn receive(State(receiver): State<Arc<Receiver>>, request: Request) -> Response {
    let Receiver { answers, printer, connections } = &*receiver;
    let (head, body) = request.into_parts();
    let mut cut_off = CutOff { printer, head: Some(head) };
    let body = timeout(BODY_WITHIN, read(body)).await.unwrap_or(Err(TOO_SLOW));
    let head = cut_off.head.take().expect("it is taken once");
    let refused = body.as_ref().err().map(|(status, _)| *status);
    let body = body.map_err(|(_, reason)| reason);
    let status = refused.unwrap_or_else(|| answers.next_status(head.headers.get(WEBHOOK_ID)));
    printer.print(received(head, body, Some(status))).await;
    sleep(answers.delay).await;
    let mut response = Response::new(Body::from(answers.body(status)));
    *response.status_mut() = status;
    response.headers_mut().extend(answers.headers.clone());
    // The rest of a body that was not read would be taken for the next request.
    if refused.is_some() || connections.free() < SHORT {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Prints a request whose connection ends before its body is whole. The server drops its handler then, because there is
/// nobody to answer.
struct CutOff<'a> {
    printer: &'a Printer,
    /// The head, until the body was read.
    head: Option<Parts>,
}

impl Drop for CutOff<'_> {
    fn drop(&mut self) {
        if let Some(head) = self.head.take() {
            self.printer.print_soon(received(head, Err(GONE), None));
        }
    }
}

fn received(head: Parts, body: Result<Bytes, &'static str>, status: Option<StatusCode>) -> Received {
    let path = head.uri.path_and_query().map_or_else(|| head.uri.to_string(), ToString::to_string);
    let (at, method) = (SystemClock.now().to_string(), head.method.to_string());
    Received { at, method, path, headers: head.headers, body, status }
}

async fn read(body: Body) -> Result<Bytes, Refusal> {
    let (mut chunks, mut whole) = (body.into_data_stream(), Vec::new());
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|_| INCOMPLETE)?;
        if whole.len() + chunk.len() > MAX_BODY {
            return Err(TOO_LARGE);
        }
        whole.extend_from_slice(&chunk);
    }
    Ok(whole.into())
}
