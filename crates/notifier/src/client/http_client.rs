//! Sends requests to servers, over connections that are kept for the next request to the same one.

use std::future::pending;
use std::pin::pin;
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
use ringback_core::job::Tenant;
use ringback_store::Store;
use tokio::sync::Notify;

use super::causes;
use super::connector::{Connector, origin};
use super::error::PostError;
use super::gate::Gate;
use super::metered::Metered;
use super::pools::Pools;
use super::resolver::Resolver;
use super::stream::Known;
use super::tls::Tls;
use crate::config::Outgoing;
use crate::credentials::Identity;
use crate::metrics::Metrics;
use crate::slow_calls::{SlowCalls, Watch};

/// Idle connections are closed after this time. Common servers close them later (Node.js after 5 s), so
/// a request does not meet a connection that the server is about to close.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);
/// A connection that is older takes no further request, so that a change of a receiver's addresses is followed.
const OLDEST: Duration = Duration::from_secs(60);
/// How often a connection of HTTP/2 with requests is asked whether it is alive, and how long it may take to answer.
const ASKED: Duration = Duration::from_secs(15);
/// The largest head of a response.
const MAX_HEAD: u32 = 32 * 1024;
/// How many headers a response may have.
const MAX_HEADERS: usize = 100;
/// How much of bodies a receiver may send over HTTP/2 before it is read: of one, and of all on a connection.
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 512 * 1024;
/// How many interim responses (RFC 9110, section 15.2) there may be before the final one.
const MAX_INTERIM: usize = 20;

pub(crate) struct HttpClient {
    pools: Pools,
    slow_calls: SlowCalls,
}

impl HttpClient {
    /// Keeps at most `idle` idle connections per host.
    pub(super) fn new(
        outgoing: Outgoing,
        idle: usize,
        store: &Store,
        slow_calls: SlowCalls,
        metrics: &Metrics,
    ) -> anyhow::Result<Self> {
        let tls =
            outgoing.authorities.as_deref().map_or_else(|| Ok(Tls::of_system()), Tls::with_authorities)?;
        let resolver = Resolver::new(&outgoing.name_servers)?;
        let gate = Gate::new(outgoing.guard, outgoing.listeners, store.clone(), metrics.clone());
        let connector = Connector::new(resolver, gate, tls, slow_calls.clone());
        let mut builder = Client::builder(TokioExecutor::new());
        builder
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(idle)
            .http1_max_buf_size(MAX_HEAD as usize)
            .http1_max_headers(MAX_HEADERS)
            .http2_max_header_list_size(MAX_HEAD)
            .http2_initial_stream_window_size(STREAM_WINDOW)
            .http2_initial_connection_window_size(CONNECTION_WINDOW)
            .timer(TokioTimer::new())
            .http2_keep_alive_interval(ASKED)
            .http2_keep_alive_timeout(ASKED);
        Ok(Self { pools: Pools::new(builder, connector), slow_calls })
    }

    pub(super) async fn execute(
        &self,
        request: Request<Bytes>,
        tenant: Option<Tenant>,
        identity: Option<Arc<Identity>>,
    ) -> Result<Response<Body>, PostError> {
        let pool = self.pools.of(tenant, identity.as_ref())?;
        let mut request = request.map(Full::new);
        let interim = Arc::new(Interim::default());
        let seen = Arc::clone(&interim);
        on_informational(&mut request, move |_| seen.one());
        let mut connection = Used { connection: capture_connection(&mut request), has_answered: false };
        let origin = origin(request.uri());
        let mut response = pin!(pool.request(request));
        let (mut metered, mut watch) = (None, None);
        let response = loop {
            tokio::select! {
                biased;
                () = interim.too_many.notified() => return Err(PostError::InterimFlood),
                begun = connection.begin(), if metered.is_none() => {
                    metered = Some(begun);
                    watch = connection.known().map(|known| self.slow_calls.watch(known.peer, &origin));
                }
                response = &mut response => break response,
                () = becomes_slow(watch.as_mut()), if watch.is_some() => {}
            }
        };
        let mut metered = metered.flatten();
        let response = response.map_err(|error| causes::of_request(&error).or_too_much(metered.as_ref()))?;
        connection.has_answered = true;
        // The first connection may have been closed before anything was sent.
        if let Some(Known { meter, .. }) = connection.known()
            && !metered.as_ref().is_some_and(|now| now.is_on(&meter))
        {
            metered = Some(meter.begin());
        }
        // What is over the limit may have been in the buffer already.
        let headers = response.headers();
        if size(headers) > MAX_HEAD as usize || headers.len() > MAX_HEADERS {
            return Err(PostError::HeadTooLarge);
        }
        Ok(response.map(|body| Body { kind: Kind::Http(body), metered, watch }))
    }
}

impl PostError {
    /// HTTP/2 has no error for a connection that received too much.
    fn or_too_much(self, metered: Option<&Metered>) -> Self {
        let may_be = matches!(self, Self::Broken | Self::Body);
        if may_be && metered.is_some_and(Metered::is_exceeded) { Self::ResponseTooLarge } else { self }
    }
}

/// The connection of an attempt. Unless it has answered, no other attempt uses it: over HTTP/2 it may be dead.
struct Used {
    connection: CaptureConnection,
    has_answered: bool,
}

impl Used {
    /// Waits for the connection, and begins to count what it receives for this attempt.
    async fn begin(&mut self) -> Option<Metered> {
        self.connection.wait_for_connection_metadata().await;
        let Known { meter, .. } = self.known()?;
        if meter.age() > OLDEST {
            self.leave();
        }
        Some(meter.begin())
    }

    fn known(&self) -> Option<Known> {
        let mut extras = Extensions::new();
        self.connection.connection_metadata().as_ref()?.get_extras(&mut extras);
        extras.remove()
    }

    /// Lets no other attempt begin on it.
    fn leave(&self) {
        self.connection.connection_metadata().as_ref().inspect(|connected| connected.poison());
    }
}

impl Drop for Used {
    fn drop(&mut self) {
        if !self.has_answered {
            self.leave();
        }
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

/// Counts the call once it is slow. Does not end.
async fn becomes_slow(watch: Option<&mut Watch>) {
    match watch {
        Some(watch) => watch.becomes_slow().await,
        None => pending().await,
    }
}

/// The body of a response.
pub(super) struct Body {
    kind: Kind,
    /// Counts on while it is read.
    metered: Option<Metered>,
    watch: Option<Watch>,
}

enum Kind {
    Http(Incoming),
    /// Of a [`Receiver`](super::Receiver).
    Whole(Option<Bytes>),
}

impl Body {
    pub(super) fn of_receiver(bytes: Bytes) -> Self {
        Self { kind: Kind::Whole(Some(bytes)), metered: None, watch: None }
    }

    /// As much was read as is wanted.
    pub(super) fn finish(self) {
        if let Some(watch) = self.watch {
            watch.answered();
        }
    }

    /// The next part; `None` at the end.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, PostError> {
        let body = match &mut self.kind {
            Kind::Http(body) => body,
            Kind::Whole(bytes) => return Ok(bytes.take()),
        };
        let (metered, mut watch) = (self.metered.as_ref(), self.watch.as_mut());
        loop {
            let frame = tokio::select! {
                biased;
                frame = body.frame() => frame,
                () = becomes_slow(watch.as_deref_mut()) => None,
            };
            let Some(frame) = frame else { return Ok(None) };
            // Trailers are of no interest.
            if let Ok(data) = frame.map_err(|error| causes::of_body(&error).or_too_much(metered))?.into_data()
            {
                return Ok(Some(data));
            }
        }
    }
}
