//! `HttpClient`: sends a request to a server over a pooled connection, and reads the head and the start of the body of
//! the response, within limits. Also reloads the certificate authorities.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::response::Parts;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::ext::on_informational;
use ringback_core::job::Tenant;
use ringback_service::{ReadAgain, Shutdown};
use ringback_store::Store;
use tokio::sync::Notify;

use super::MAX_BODY;
use super::causes;
use super::connection::{MAX_HEAD, MAX_HEADERS};
use super::connections::ConnectionChoice;
use super::connector::{Connector, origin};
use super::error::PostError;
use super::gate::Gate;
use super::metered::Metered;
use super::pools::Pools;
use super::resolver::Resolver;
use super::tls::Tls;
use crate::config::Outgoing;
use crate::credentials::Identity;
use crate::metrics::Metrics;
use crate::slow_calls::SlowCalls;

/// How many interim responses (RFC 9110, section 15.2) there may be before the final one.
const MAX_INTERIM: usize = 20;

pub(crate) struct HttpClient {
    pools: Pools,
    slow_calls: SlowCalls,
    /// The file with the certificate authorities; without one those of the system.
    authorities: Option<PathBuf>,
}

impl HttpClient {
    /// A client that keeps at most `idle` idle connections per origin. Fails if the file of certificate authorities
    /// cannot be used, or the resolver cannot be made.
    pub(super) fn new(
        outgoing: Outgoing,
        idle: usize,
        store: &Store,
        slow_calls: SlowCalls,
        metrics: &Metrics,
    ) -> anyhow::Result<Self> {
        let tls = trusted(outgoing.authorities.as_deref())?;
        let resolver = Resolver::new(&outgoing.name_servers)?;
        let gate = Gate::new(outgoing.guard, outgoing.listeners, store.clone(), metrics.clone());
        let connector = Connector::new(resolver, gate, tls, slow_calls.clone());
        Ok(Self { pools: Pools::new(connector, idle), slow_calls, authorities: outgoing.authorities })
    }

    /// Reads the certificate authorities again at each SIGHUP, until the shutdown. If that fails, logs it and keeps
    /// those from before.
    pub(crate) async fn follow_authorities(self: Arc<Self>, shutdown: Shutdown) {
        let mut read_again = ReadAgain::listen();
        loop {
            tokio::select! {
                () = shutdown.stopping() => return,
                () = read_again.next() => {}
            }
            match trusted(self.authorities.as_deref()) {
                Ok(tls) => {
                    self.pools.trust(tls);
                    tracing::info!("the certificate authorities of receivers were read again");
                }
                Err(error) => tracing::warn!("{error}; the certificate authorities from before are used"),
            }
        }
    }

    /// Sends a request, and reads the head of the response and up to 64 KiB of its body. Returns the first bytes of the
    /// body, as many as `keep` says by the status. A body that breaks off is an error only after a success; one that is
    /// too large always is.
    pub(super) async fn execute(
        &self,
        request: Request<Bytes>,
        tenant: Option<Tenant>,
        identity: Option<Arc<Identity>>,
        wanted: ConnectionChoice,
        keep: impl FnOnce(StatusCode) -> usize,
    ) -> Result<(Parts, Vec<u8>), PostError> {
        let pool = self.pools.of(tenant, identity.as_ref())?;
        let mut request = request.map(Full::new);
        let interim = Arc::new(Interim::default());
        let seen = Arc::clone(&interim);
        on_informational(&mut request, move |_| seen.one());
        let origin = origin(request.uri());
        let mut lent = pool.lend(request.uri(), &origin, wanted).await?;
        let known = lent.known().ok_or(PostError::Broken)?;
        let (metered, mut watch) = (known.meter.begin(), self.slow_calls.watch(known.peer, &origin));
        let answered = tokio::select! {
            biased;
            () = interim.too_many.notified() => Err(PostError::InterimFlood),
            answered = lent.send(request) => answered,
            () = watch.becomes_slow() => Err(PostError::Timeout),
        };
        let (head, mut body) = answered.map_err(|error| error.or_too_much(&metered))?.into_parts();
        // What is over the limit may have been in the buffer already.
        if size(&head.headers) > MAX_HEAD as usize || head.headers.len() > MAX_HEADERS {
            return Err(PostError::HeadTooLarge);
        }
        // An empty Vec allocates nothing.
        let (keep, mut read, mut kept) = (keep(head.status), 0, Vec::new());
        while read < MAX_BODY {
            let frame = tokio::select! {
                biased;
                frame = body.frame() => frame,
                () = watch.becomes_slow() => None,
            };
            let Some(frame) = frame else { break };
            match frame.map_err(|error| causes::of_body(&error).or_too_much(&metered)) {
                Ok(frame) => {
                    // Trailers are of no interest.
                    let Ok(chunk) = frame.into_data() else { continue };
                    kept.extend_from_slice(&chunk[..chunk.len().min(keep - kept.len())]);
                    read += chunk.len();
                }
                // Whatever the body would have been, the status says what becomes of the job.
                Err(PostError::Body) if !head.status.is_success() => break,
                Err(error) => return Err(error),
            }
        }
        drop(body);
        pool.give_back(lent);
        watch.answered();
        Ok((head, kept))
    }
}

fn trusted(authorities: Option<&Path>) -> anyhow::Result<Tls> {
    authorities.map_or_else(|| Ok(Tls::of_system()), Tls::with_authorities)
}

impl PostError {
    /// [`PostError::ResponseTooLarge`] instead of an error that may come from receiving too much, if the connection
    /// has: HTTP/2 has no error of its own for that.
    fn or_too_much(self, metered: &Metered) -> Self {
        let may_be = matches!(self, Self::Broken | Self::Ended | Self::Reset | Self::Body);
        if may_be && metered.is_exceeded() { Self::ResponseTooLarge } else { self }
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
