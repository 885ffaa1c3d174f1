//! The HTTP client: no redirects, proxies, retries, decompression or cookies. It reads the head and at
//! most 64 KiB of the body of a response, and compares the body with the one that the topic expects. In
//! simulations a [`Receiver`] in this process answers instead of a server.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use reqwest::{Request, Response, Url, redirect, retry};
use ringback_core::contract::MAX_ANSWER as MAX_LOGGED;
use ringback_core::policy::Policy;

/// The most bytes of a body that are read. A longer body is cut off by closing the connection.
const MAX_BODY: usize = 64 * 1024;
/// Idle connections are closed after this time. Common servers close them later (Node.js after 5 s), so
/// a request does not meet a connection that the server is about to close.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// ENOMEM, ENFILE, EMFILE and ENOBUFS on Linux: shortages that affect every request.
const OUT_OF_RESOURCES: [i32; 4] = [12, 23, 24, 105];
/// The error on Linux when no local port is free for a destination.
const EADDRNOTAVAIL: i32 = 99;

/// Where requests are sent.
pub(crate) enum Client {
    Http(reqwest::Client),
    Local(Arc<dyn Receiver>),
}

/// Answers requests without a network, in simulations.
pub trait Receiver: Send + Sync + 'static {
    /// Answers a request; `None` if the connection breaks before there is an answer.
    fn receive(&self, request: http::Request<Bytes>) -> LocalAnswer;
}

/// What a [`Receiver`] returns.
pub type LocalAnswer = Pin<Box<dyn Future<Output = Option<http::Response<Bytes>>> + Send>>;

impl Client {
    async fn execute(&self, request: Request) -> Result<Response, PostError> {
        match self {
            Self::Http(client) => client.execute(request).await.map_err(|error| classify(&error)),
            Self::Local(receiver) => {
                let request = http::Request::try_from(request).map_err(|_| PostError::Broken)?;
                let request =
                    request.map(|body| body.as_bytes().map_or_else(Bytes::new, Bytes::copy_from_slice));
                receiver.receive(request).await.map(Response::from).ok_or(PostError::Broken)
            }
        }
    }
}

/// A request to send.
pub(crate) struct PostRequest {
    /// The policy of the topic, which may name the expected body of the response.
    pub(crate) policy: Option<Arc<Policy>>,
    pub(crate) url: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
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
    /// Returns the error, as in the API and the log, of a success with another body than expected.
    pub(crate) fn error(&self) -> Option<&'static str> {
        (self.status.is_success() && !self.is_expected).then_some("unexpected body")
    }
}

/// Why there is no complete response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PostError {
    /// The timeout is over.
    Timeout,
    /// No connection: refused, unreachable, name unknown, or TLS failed.
    Connect,
    /// The body is incomplete.
    Body,
    /// The connection broke, or the response is not HTTP.
    Broken,
    /// This machine has no free port for this destination; nothing was sent.
    Ports,
    /// This machine is out of file descriptors or memory; nothing was sent.
    Local,
}

impl PostError {
    /// Returns the name used in the API and the log.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Connect => "connect",
            Self::Body => "body",
            Self::Broken => "broken",
            Self::Ports => "ports",
            Self::Local => "local",
        }
    }
}

/// Creates the HTTP client. It keeps at most `idle` idle connections per host.
pub(crate) fn build(idle: usize) -> reqwest::Result<Client> {
    reqwest::Client::builder()
        .redirect(redirect::Policy::none())
        .no_proxy()
        .retry(retry::never())
        .referer(false)
        .tcp_nodelay(true)
        .pool_max_idle_per_host(idle)
        .pool_idle_timeout(IDLE_TIMEOUT)
        .build()
        .map(Client::Http)
}

/// Sends a POST and reads the response. The caller sets the time limit. `is_logged` decides by the status
/// whether the start of the body is kept.
pub(crate) async fn post(
    client: &Client,
    post: PostRequest,
    is_logged: impl Fn(StatusCode) -> bool,
) -> Result<PostResponse, PostError> {
    let url = Url::parse(&post.url).map_err(|_| PostError::Broken)?;
    // Built directly: the builder would copy the headers one by one into a growing map.
    let mut request = Request::new(Method::POST, url);
    *request.headers_mut() = post.headers;
    *request.body_mut() = Some(post.body.into());
    let expected = post.policy.as_ref().and_then(|policy| policy.expect_body.as_deref());
    let mut response = client.execute(request).await?;
    let keep = match expected {
        Some(_) => MAX_BODY,
        None if is_logged(response.status()) => MAX_LOGGED,
        None => 0,
    };
    // An empty Vec allocates nothing.
    let (mut read, mut kept) = (0, Vec::new());
    while read < MAX_BODY {
        match response.chunk().await {
            Ok(Some(chunk)) => {
                kept.extend_from_slice(&chunk[..chunk.len().min(keep - kept.len())]);
                read += chunk.len();
            }
            Ok(None) => break,
            Err(_) => return Err(PostError::Body),
        }
    }
    let is_expected = expected.is_none_or(|expected| kept.trim_ascii() == expected.as_bytes());
    // A response with an unexpected body is logged as a failure.
    kept.truncate(if is_expected && !is_logged(response.status()) { 0 } else { MAX_LOGGED });
    let headers = std::mem::take(response.headers_mut());
    Ok(PostResponse { status: response.status(), headers, body: kept.into(), is_expected })
}

fn classify(error: &reqwest::Error) -> PostError {
    // A machine without IPv6 reports the same code, but that is no temporary shortage.
    let v6 = error.url().and_then(|url| url.host_str()).is_some_and(|host| host.starts_with('['));
    if has_code(error, &OUT_OF_RESOURCES) {
        PostError::Local
    } else if has_code(error, &[EADDRNOTAVAIL]) && !v6 {
        PostError::Ports
    } else if error.is_timeout() {
        PostError::Timeout
    } else if error.is_connect() {
        PostError::Connect
    } else {
        PostError::Broken
    }
}

/// Returns true if a cause is one of these error codes of the operating system.
fn has_code(error: &reqwest::Error, codes: &[i32]) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        let code = error.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
        if code.is_some_and(|code| codes.contains(&code)) {
            return true;
        }
        cause = error.source();
    }
    false
}
