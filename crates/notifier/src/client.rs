//! The one HTTP client: no redirects, no proxies, no retries of its own, no decompression,
//! no cookies. It reads an answer's head and at most 64 KiB of its body, and compares that with
//! what the topic expects.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use reqwest::{Client, Request, Url, redirect, retry};
use ringback_core::contract::MAX_ANSWER as MOST_KEPT;
use ringback_core::policy::Policy;

/// Of an answer's body, no more is read. What follows is cut off with the connection.
const MAX_ANSWER: usize = 64 * 1024;
/// Idle connections are closed before common servers close them (Node.js after 5 s), so
/// that a job does not run into a connection that is just going away.
const IDLE: Duration = Duration::from_secs(4);

/// ENOMEM, ENFILE, EMFILE and ENOBUFS on Linux: what every call would run into.
const LACKING: [i32; 4] = [12, 23, 24, 105];
/// On Linux; what the calls to one destination run into, for ports are counted by it.
const EADDRNOTAVAIL: i32 = 99;

/// What is sent.
pub(crate) struct Call {
    /// What the topic says of it, the answer that it expects among that.
    pub(crate) policy: Option<Arc<Policy>>,
    pub(crate) url: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// What came back: a complete head, and a body read to its end or to 64 KiB.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// The start of the body, where it was asked for.
    pub(crate) start: Bytes,
    /// Whether its body is what the topic expects, where it expects something.
    pub(crate) is_expected: bool,
}

impl Answer {
    /// The word used in the API and the log for a success that is none.
    pub(crate) fn error(&self) -> Option<&'static str> {
        (self.status.is_success() && !self.is_expected).then_some("unexpected body")
    }
}

/// Why nothing, or no whole answer, came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallError {
    /// Not within the deadline.
    Timeout,
    /// No connection: refused, unreachable, name unknown, or TLS failed.
    Connect,
    /// The head came, the body broke off.
    Body,
    /// The connection broke, or what came is no HTTP.
    Broken,
    /// This machine has no port left for this destination, so that nothing was sent.
    Ports,
    /// This machine has run out of something (file descriptors, memory), so that nothing
    /// was sent.
    Local,
}

impl CallError {
    /// The word used in the API and the log.
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

/// Makes the client; at most `idle` connections per host are kept open.
pub(crate) fn build(idle: usize) -> reqwest::Result<Client> {
    Client::builder()
        .redirect(redirect::Policy::none())
        .no_proxy()
        .retry(retry::never())
        .referer(false)
        .tcp_nodelay(true)
        .pool_max_idle_per_host(idle)
        .pool_idle_timeout(IDLE)
        .build()
}

/// One POST, from the name look-up to the last byte that is read. The caller bounds it, and
/// says by the status whether the start of the body is worth keeping.
pub(crate) async fn post(
    client: &Client,
    call: Call,
    is_kept: impl Fn(StatusCode) -> bool,
) -> Result<Answer, CallError> {
    let url = Url::parse(&call.url).map_err(|_| CallError::Broken)?;
    // Made whole: the client's builder would move the headers one by one into a map that grows.
    let mut request = Request::new(Method::POST, url);
    *request.headers_mut() = call.headers;
    *request.body_mut() = Some(call.body.into());
    let expected = call.policy.as_ref().and_then(|policy| policy.expect_body.as_deref());
    let mut response = client.execute(request).await.map_err(|e| classify(&e))?;
    let room = match expected {
        Some(_) => MAX_ANSWER,
        None if is_kept(response.status()) => MOST_KEPT,
        None => 0,
    };
    // Allocates nothing while nothing is put into it.
    let (mut read, mut kept) = (0, Vec::new());
    while read < MAX_ANSWER {
        match response.chunk().await {
            Ok(Some(chunk)) => {
                kept.extend_from_slice(&chunk[..chunk.len().min(room - kept.len())]);
                read += chunk.len();
            }
            Ok(None) => break,
            Err(_) => return Err(CallError::Body),
        }
    }
    let is_expected = expected.is_none_or(|expected| kept.trim_ascii() == expected.as_bytes());
    // What is not as expected has failed.
    kept.truncate(if is_expected && !is_kept(response.status()) { 0 } else { MOST_KEPT });
    let headers = std::mem::take(response.headers_mut());
    Ok(Answer { status: response.status(), headers, start: kept.into(), is_expected })
}

fn classify(error: &reqwest::Error) -> CallError {
    // No IPv6 on this machine shows like a lack of ports, and is none that passes.
    let v6 = error.url().and_then(|url| url.host_str()).is_some_and(|host| host.starts_with('['));
    if has_code(error, &LACKING) {
        CallError::Local
    } else if has_code(error, &[EADDRNOTAVAIL]) && !v6 {
        CallError::Ports
    } else if error.is_timeout() {
        CallError::Timeout
    } else if error.is_connect() {
        CallError::Connect
    } else {
        CallError::Broken
    }
}

/// Whether a cause is one of these codes of the operating system.
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
