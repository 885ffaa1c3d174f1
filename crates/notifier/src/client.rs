//! The HTTP client that sends callbacks: no redirects, proxies, retries, decompression or cookies. It reads the head
//! and at most 64 KiB of the body of a response, and compares the body with the one that the topic expects.
//! `http_client` sends requests to servers; in simulations a [`Receiver`] in this process answers instead.

mod causes;
mod connection;
mod connections;
mod connector;
mod error;
mod gate;
mod head_end;
mod http_client;
mod lent_connection;
mod metered;
mod pools;
mod race;
mod resolver;
mod status_line;
mod stream;
mod tls;

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use ringback_core::job::Tenant;
use ringback_core::store_types::MAX_ANSWER as MAX_LOGGED;
use ringback_core::topic_policy::Policy;
use ringback_store::Store;

pub(crate) use self::connections::ConnectionChoice;
pub(crate) use self::error::PostError;
pub(crate) use self::http_client::HttpClient;
use crate::config::Outgoing;
use crate::credentials::Identity;
use crate::metrics::Metrics;
use crate::slow_calls::SlowCalls;

/// The most bytes of a body that are read. A longer body is cut off by closing the connection.
const MAX_BODY: usize = 64 * 1024;

/// Where requests are sent.
pub(crate) enum Client {
    Http(Arc<HttpClient>),
    Local(Arc<dyn Receiver>),
}

/// Answers requests without a network, in simulations.
pub trait Receiver: Send + Sync + 'static {
    /// Answers a request; `None` if the connection breaks before there is an answer.
    fn receive(&self, request: Request<Bytes>) -> LocalResponse;
}

/// What a [`Receiver`] returns.
pub type LocalResponse = Pin<Box<dyn Future<Output = Option<Response<Bytes>>> + Send>>;

/// A request to send.
pub(crate) struct PostRequest {
    /// The policy of the topic, which may name the expected body of the response.
    pub(crate) policy: Option<Arc<Policy>>,
    pub(crate) method: Method,
    pub(crate) url: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// Whose connections it uses.
    pub(crate) tenant: Option<Tenant>,
    /// The client certificate and authorities that its connections use for TLS.
    pub(crate) identity: Option<Arc<Identity>>,
    pub(crate) wanted: ConnectionChoice,
}

/// A response: a complete head, and a body read to its end or to 64 KiB.
#[derive(Clone, Debug)]
pub(crate) struct PostResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// The start of the body, if the attempt is logged.
    pub(crate) body: Bytes,
    /// False if the topic expects another body.
    pub(crate) is_expected: bool,
}

impl PostResponse {
    /// The error, as in the API and the log, of a success with another body than expected; `None` for other responses.
    pub(crate) fn error(&self) -> Option<&'static str> {
        (self.status.is_success() && !self.is_expected).then_some("unexpected body")
    }
}

/// Creates the HTTP client. It keeps at most `idle` idle connections per origin. Fails if the file of certificate
/// authorities cannot be used, or names cannot be looked up.
pub(crate) fn build(
    outgoing: Outgoing,
    idle: usize,
    store: &Store,
    slow_calls: SlowCalls,
    metrics: &Metrics,
) -> anyhow::Result<Client> {
    Ok(Client::Http(Arc::new(HttpClient::new(outgoing, idle, store, slow_calls, metrics)?)))
}

impl Client {
    /// Sends a request and reads the response. The caller sets the time limit. `is_logged` decides by the status
    /// whether the start of the body is kept; it is also kept if the body is not the expected one.
    pub(crate) async fn post(
        &self,
        post: PostRequest,
        is_logged: impl Fn(StatusCode) -> bool,
    ) -> Result<PostResponse, PostError> {
        let mut request = Request::new(post.body);
        *request.method_mut() = post.method;
        *request.uri_mut() = Uri::try_from(post.url).map_err(|_| PostError::Broken)?;
        *request.headers_mut() = post.headers;
        let expected = post.policy.as_ref().and_then(|policy| policy.expect_body.as_deref());
        let keep = |status| match expected {
            Some(_) => MAX_BODY,
            None if is_logged(status) => MAX_LOGGED,
            None => 0,
        };
        let (head, mut kept) = match self {
            Self::Http(client) => {
                client.execute(request, post.tenant, post.identity, post.wanted, keep).await?
            }
            Self::Local(receiver) => {
                let (head, body) = receiver.receive(request).await.ok_or(PostError::Broken)?.into_parts();
                let kept = body[..body.len().min(keep(head.status))].to_vec();
                (head, kept)
            }
        };
        let is_expected = expected.is_none_or(|expected| kept.trim_ascii() == expected.as_bytes());
        // A response with an unexpected body is logged as a failure.
        kept.truncate(if is_expected && !is_logged(head.status) { 0 } else { MAX_LOGGED });
        Ok(PostResponse { status: head.status, headers: head.headers, body: kept.into(), is_expected })
    }
}
