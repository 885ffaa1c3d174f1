//! The one HTTP client: no redirects, no proxies, every wait bounded. An answer that is no
//! success is an error that says whether asking again may help.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode, header};
use reqwest::{Response, Url};
use ringback_core::wire::Problem;

/// So long a connection may take; then the server counts as away.
const CONNECT_WITHIN: Duration = Duration::from_secs(3);
/// So long an answer may pause in the middle, or before it begins: a reserve waits for a minute.
const PAUSE: Duration = Duration::from_secs(75);
/// How often a server is asked for a sign of life while it says nothing.
const PROBE_EVERY: Duration = Duration::from_secs(20);
/// So long a call about one job may take; the server itself gives up after two seconds.
pub(crate) const SHORT: Duration = Duration::from_secs(10);
/// So long a call about many jobs may take.
pub(crate) const LONG: Duration = Duration::from_secs(60);
/// The most of an error's answer that is read.
const MAX_PROBLEM: usize = 256 * 1024;

/// A call to make.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) method: Method,
    /// The parts of the path, not encoded.
    pub(crate) path: Vec<String>,
    pub(crate) query: Vec<(&'static str, String)>,
    /// The content type and the body.
    pub(crate) body: Option<(&'static str, Bytes)>,
}

impl Call {
    /// A call without query and body.
    pub(crate) fn new(method: Method, path: &[&str]) -> Self {
        let path = path.iter().map(|part| (*part).to_owned()).collect();
        Self { method, path, query: Vec::new(), body: None }
    }
}

/// A good answer.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
}

/// Why there is no good answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    /// No connection, or it broke before there was an answer.
    #[error("no answer from {server}: {why}")]
    Away { server: String, why: String },
    /// Not in time.
    #[error("{server} did not answer within {} s", within.as_secs())]
    Slow { server: String, within: Duration },
    /// The server said what is wrong.
    #[error("{} {}: {}", problem.status, problem.title, problem.detail)]
    Problem { problem: Box<Problem>, retry_after: Option<Duration> },
    /// An answer that is not of this API.
    #[error("{server} answered {status}, but not as Ringback does")]
    Stranger { server: String, status: StatusCode, retry_after: Option<Duration> },
    /// The server does not know the call.
    #[error("the server does not offer {what}")]
    Lacking { what: &'static str },
    /// The answer ended in the middle.
    #[error("the answer broke off: {why}")]
    CutOff { why: String },
    /// The answer is no JSON of this API.
    #[error("the answer cannot be read: {0}")]
    Unreadable(String),
}

impl ClientError {
    /// Whether the same call may succeed a little later.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Away { .. } | Self::Slow { .. } | Self::CutOff { .. } => true,
            Self::Problem { problem, .. } => passes(problem.status),
            Self::Stranger { status, .. } => passes(status.as_u16()),
            Self::Lacking { .. } | Self::Unreadable(_) => false,
        }
    }

    /// When the server asked to come again.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Problem { retry_after, .. } | Self::Stranger { retry_after, .. } => *retry_after,
            Self::Away { .. }
            | Self::Slow { .. }
            | Self::Lacking { .. }
            | Self::CutOff { .. }
            | Self::Unreadable(_) => None,
        }
    }

    /// For calls that are about no single job: an unknown path or method is not about one either.
    pub(crate) fn of_whole(self, what: &'static str) -> Self {
        match self {
            Self::Problem { problem, .. } if matches!(problem.status, 404 | 405) => Self::Lacking { what },
            other => other,
        }
    }
}

/// Whether what a status speaks of passes by itself.
pub(crate) fn passes(status: u16) -> bool {
    matches!(status, 408 | 429 | 500..)
}

/// A server.
pub(crate) struct Client {
    http: reqwest::Client,
    server: Url,
}

impl Client {
    /// A client that has not connected yet.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub(crate) fn new(server: Url) -> anyhow::Result<Self> {
        // It fails only where there is a provider already.
        rustls::crypto::ring::default_provider().install_default().ok();
        Ok(Self { http: builder().read_timeout(PAUSE).build()?, server })
    }

    /// One that waits for as long as it is told to for an answer to begin.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub(crate) fn unhurried(&self) -> anyhow::Result<Self> {
        let http = builder().tcp_keepalive(PROBE_EVERY).tcp_keepalive_interval(PROBE_EVERY).build()?;
        Ok(Self { http, server: self.server.clone() })
    }

    /// The whole answer of a call, which must be a success.
    pub(crate) async fn ask(&self, call: Call, within: Duration) -> Result<Answer, ClientError> {
        let whole = async {
            let response = self.open(call).await?;
            let status = response.status();
            let body = response.bytes().await.map_err(|error| cut_off(&error))?;
            Ok(Answer { status, body })
        };
        let slow = |_| ClientError::Slow { server: self.shown(), within };
        tokio::time::timeout(within, whole).await.map_err(slow)?
    }

    /// The head of an answer, which must be a success; its body is yet to be read.
    pub(crate) async fn open(&self, call: Call) -> Result<Response, ClientError> {
        let mut request = self.http.request(call.method, self.url(&call.path, &call.query));
        if let Some((content_type, body)) = call.body {
            request = request.header(header::CONTENT_TYPE, content_type).body(body);
        }
        let response = request.send().await.map_err(|error| self.away(&error))?;
        if response.status().is_success() { Ok(response) } else { Err(self.refusal(response).await) }
    }

    fn url(&self, path: &[String], query: &[(&'static str, String)]) -> Url {
        let mut url = self.server.clone();
        url.path_segments_mut().expect("an http URL has a path").pop_if_empty().extend(path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        url
    }

    /// The server as people name it.
    fn shown(&self) -> String {
        self.server.as_str().trim_end_matches('/').to_owned()
    }

    fn away(&self, error: &reqwest::Error) -> ClientError {
        let server = self.shown();
        if error.is_timeout() && !error.is_connect() {
            return ClientError::Slow { server, within: PAUSE };
        }
        let why = if error.is_timeout() {
            format!("no connection within {} s", CONNECT_WITHIN.as_secs())
        } else {
            innermost(error)
        };
        ClientError::Away { server, why }
    }

    async fn refusal(&self, mut response: Response) -> ClientError {
        let status = response.status();
        let value = response.headers().get(header::RETRY_AFTER);
        let retry_after = value.and_then(|value| value.to_str().ok()).and_then(retry_after);
        let mut body = Vec::new();
        // A problem that breaks off is one that cannot be read.
        while let Ok(Some(chunk)) = response.chunk().await {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_PROBLEM {
                break;
            }
        }
        match serde_json::from_slice::<Problem>(&body) {
            Ok(problem) => ClientError::Problem { problem: Box::new(problem), retry_after },
            Err(_) => ClientError::Stranger { server: self.shown(), status, retry_after },
        }
    }
}

fn builder() -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .no_proxy()
        .connect_timeout(CONNECT_WITHIN)
        .tcp_nodelay(true)
        .user_agent(concat!("ringback/", env!("CARGO_PKG_VERSION")))
}

/// Retry-After in seconds (RFC 9110, section 10.2.3); a date would need the server's clock.
fn retry_after(text: &str) -> Option<Duration> {
    text.trim().parse().ok().map(Duration::from_secs)
}

/// What a body that does not end well is told as.
pub(crate) fn cut_off(error: &reqwest::Error) -> ClientError {
    ClientError::CutOff { why: innermost(error) }
}

/// The last cause, which is the one that people know: "Connection refused".
fn innermost(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(server: &str) -> Client {
        Client::new(server.parse().unwrap()).unwrap()
    }

    #[test]
    fn a_path_of_the_server_stands_before_that_of_a_call() {
        let path = ["v1".to_owned(), "jobs".to_owned(), "a b".to_owned(), "x~y:@+=,".to_owned()];
        let url = client("http://h:1/ringback/").url(&path, &[("state", "a&b".to_owned())]);
        assert_eq!(url.as_str(), "http://h:1/ringback/v1/jobs/a%20b/x~y:@+=,?state=a%26b");
        assert_eq!(client("http://h:1").url(&path[..2], &[]).as_str(), "http://h:1/v1/jobs");
    }

    #[test]
    fn what_passes_by_itself_is_worth_another_try() {
        for (status, again) in
            [(503, true), (500, true), (429, true), (408, true), (409, false), (422, false)]
        {
            let problem = Problem::new(StatusCode::from_u16(status).unwrap(), "");
            let error = ClientError::Problem { problem: Box::new(problem), retry_after: None };
            assert_eq!(error.is_transient(), again, "{status}");
        }
        assert!(ClientError::CutOff { why: String::new() }.is_transient());
        assert!(!ClientError::Lacking { what: "x" }.is_transient());
    }

    #[test]
    fn retry_after_counts_in_seconds() {
        assert_eq!(retry_after(" 3 "), Some(Duration::from_secs(3)));
        assert_eq!(retry_after("-1"), None);
        assert_eq!(retry_after("soon"), None);
    }
}
