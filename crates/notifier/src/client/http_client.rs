//! Sends requests to servers, over connections that are kept for the next request to the same one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Extensions, HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::ext::on_informational;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{CaptureConnection, capture_connection};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::sync::Notify;

use super::causes;
use super::connector::Connector;
use super::error::PostError;
use super::metered::Metered;
use super::resolver::Resolver;
use super::stream::Known;
use super::tls::Tls;
use crate::config::Outgoing;

/// Idle connections are closed after this time. Common servers close them later (Node.js after 5 s), so
/// a request does not meet a connection that the server is about to close.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);
/// No request begins on a connection that is older, so that a change of a receiver's addresses is followed.
const OLDEST: Duration = Duration::from_secs(60);
/// The largest head of a response.
const MAX_HEAD: u32 = 32 * 1024;
/// How many headers a response may have.
const MAX_HEADERS: usize = 100;
/// How many interim responses (RFC 9110, section 15.2) there may be before the final one.
const MAX_INTERIM: usize = 20;

pub(crate) struct HttpClient(Client<Connector, Full<Bytes>>);

impl HttpClient {
    /// Keeps at most `idle` idle connections per host.
    pub(super) fn new(outgoing: &Outgoing, idle: usize) -> anyhow::Result<Self> {
        let tls =
            outgoing.authorities.as_deref().map_or_else(|| Ok(Tls::default()), Tls::with_authorities)?;
        let connector = Connector::new(Resolver::new(&outgoing.name_servers)?, tls);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(idle)
            .http1_max_buf_size(MAX_HEAD as usize)
            .http1_max_headers(MAX_HEADERS)
            .http2_max_header_list_size(MAX_HEAD)
            .build(connector);
        Ok(Self(client))
    }

    pub(super) async fn execute(&self, request: Request<Bytes>) -> Result<Response<Body>, PostError> {
        let mut request = request.map(Full::new);
        let interim = Arc::new(Interim::default());
        let seen = Arc::clone(&interim);
        on_informational(&mut request, move |_| seen.one());
        let mut connection = capture_connection(&mut request);
        let mut response = std::pin::pin!(self.0.request(request));
        let mut metered = None;
        let response = loop {
            tokio::select! {
                biased;
                () = interim.too_many.notified() => return Err(PostError::InterimFlood),
                begun = begin(&mut connection), if metered.is_none() => metered = Some(begun),
                response = &mut response => break response,
            }
        };
        let response = response.map_err(|error| causes::of_request(&error))?;
        leave_old(&connection);
        // What is over the limit may have been in the buffer already.
        if size(response.headers()) > MAX_HEAD as usize {
            return Err(PostError::HeadTooLarge);
        }
        Ok(response.map(|body| Body { kind: Kind::Http(body), _metered: metered.flatten() }))
    }
}

/// The size of headers in HTTP/1.1, in bytes.
fn size(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len()).sum()
}

/// Counts interim responses.
#[derive(Default)]
struct Interim {
    count: AtomicUsize,
    too_many: Notify,
}

impl Interim {
    fn one(&self) {
        if self.count.fetch_add(1, Ordering::Relaxed) == MAX_INTERIM {
            self.too_many.notify_one();
        }
    }
}

/// Waits for the connection that is used, and begins to count what it receives for this attempt.
async fn begin(connection: &mut CaptureConnection) -> Option<Metered> {
    connection.wait_for_connection_metadata().await;
    known(connection).map(|known| known.0.begin())
}

/// Lets no request after this one use a connection that is old.
fn leave_old(connection: &CaptureConnection) {
    if known(connection).is_some_and(|known| known.0.since().elapsed() > OLDEST) {
        connection.connection_metadata().as_ref().inspect(|connected| connected.poison());
    }
}

fn known(connection: &CaptureConnection) -> Option<Known> {
    let mut extras = Extensions::new();
    connection.connection_metadata().as_ref()?.get_extras(&mut extras);
    extras.remove()
}

/// The body of a response.
pub(super) struct Body {
    kind: Kind,
    /// Counts on while it is read.
    _metered: Option<Metered>,
}

enum Kind {
    Http(Incoming),
    /// Of a [`Receiver`](super::Receiver).
    Whole(Option<Bytes>),
}

impl Body {
    pub(super) fn of_receiver(bytes: Bytes) -> Self {
        Self { kind: Kind::Whole(Some(bytes)), _metered: None }
    }

    /// The next part; `None` at the end.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, PostError> {
        let body = match &mut self.kind {
            Kind::Http(body) => body,
            Kind::Whole(bytes) => return Ok(bytes.take()),
        };
        while let Some(frame) = body.frame().await {
            // Trailers are of no interest.
            if let Ok(data) = frame.map_err(|error| causes::of_body(&error))?.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }
}
