//! The HTTP client of the command line: calls, replies, and errors, which know whether a retry may help. It follows no
//! redirects and uses no proxies. A response without a status of success is an error.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use reqwest::{Certificate, Identity, Response, Url};
use ringback_core::connection_url::shown;
use ringback_core::encoding::without_mark;
use ringback_core::job::{JobKey, Tenant};
use ringback_wire::Problem;
use serde_json::Value;

use crate::access::{Access, tenant_header, tenant_value};

/// The limit of connecting; then the server counts as unreachable.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// The limit of a pause before or within a response. A reserve waits for a minute.
const READ_TIMEOUT: Duration = Duration::from_secs(75);
/// The interval of TCP keep-alive probes on a silent connection.
const KEEPALIVE: Duration = Duration::from_secs(20);
/// The limit of a call for one job. The server itself gives up after two seconds.
pub(crate) const SHORT: Duration = Duration::from_secs(10);
/// The limit of a call for many jobs.
pub(crate) const LONG: Duration = Duration::from_secs(60);
/// The most bytes of an error response that are read.
const MAX_PROBLEM: usize = 256 * 1024;

/// A call to make.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) method: Method,
    /// The segments of the path, not encoded.
    pub(crate) path: Vec<String>,
    pub(crate) query: Vec<(&'static str, String)>,
    /// The headers besides those of the body.
    pub(crate) headers: HeaderMap,
    /// The content type and the body.
    pub(crate) body: Option<(&'static str, Bytes)>,
}

impl Call {
    /// A call without query, headers and body.
    pub(crate) fn new(method: Method, path: &[&str]) -> Self {
        let path = path.iter().map(|part| (*part).to_owned()).collect();
        Self { method, path, query: Vec::new(), headers: HeaderMap::new(), body: None }
    }

    pub(crate) fn job(method: Method, key: &JobKey, below: &[&str]) -> Self {
        Self::new(method, &[&["v1", "jobs", key.topic.as_str(), key.id.as_str()], below].concat())
    }

    pub(crate) fn topic(method: Method, topic: &str, below: &[&str]) -> Self {
        Self::new(method, &[&["v1", "topics", topic], below].concat())
    }

    /// The same call for a tenant, or for what belongs to none, instead of the tenant that was chosen for the command.
    pub(crate) fn for_tenant(mut self, tenant: Option<&Tenant>) -> Self {
        self.headers.insert(tenant_header(), tenant_value(tenant));
        self
    }

    /// The same call with a JSON body.
    pub(crate) fn json(mut self, body: &Value) -> Self {
        self.body = Some(("application/json", body.to_string().into()));
        self
    }
}

/// A response with a status of success.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
}

/// The reason why there is no successful response.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    /// The server could not be reached, or the connection broke before a response.
    #[error("no response from {server}: {why}")]
    Unreachable { server: String, why: String },
    /// The response did not come in time.
    #[error("{server} did not answer within {} s", within.as_secs())]
    TimedOut { server: String, within: Duration },
    /// The API answered with a problem document.
    #[error("{} {}: {}", problem.status, problem.title, problem.detail)]
    Problem { problem: Box<Problem>, retry_after: Option<Duration> },
    /// The response is not one of this API.
    #[error("{server} answered {status}, but it is not a Ringback API")]
    NotRingback { server: String, status: StatusCode, retry_after: Option<Duration> },
    /// The server does not know the route.
    #[error("the server does not offer {what}")]
    Unsupported { what: &'static str },
    /// The response ended early.
    #[error("the response ended early: {why}")]
    CutOff { why: String },
    /// The body of a response is not what this API sends.
    #[error("the response cannot be read: {0}")]
    Unreadable(String),
}

impl ClientError {
    /// Whether the same call may succeed later.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::TimedOut { .. } | Self::CutOff { .. } => true,
            Self::Problem { problem, .. } => is_transient(problem.status),
            Self::NotRingback { status, .. } => is_transient(status.as_u16()),
            Self::Unsupported { .. } | Self::Unreadable(_) => false,
        }
    }

    /// How long the server asked to wait before a retry; `None` if it did not.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Problem { retry_after, .. } | Self::NotRingback { retry_after, .. } => *retry_after,
            Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::Unsupported { .. }
            | Self::CutOff { .. }
            | Self::Unreadable(_) => None,
        }
    }

    /// Turns the 404 or 405 of a call that names no job or topic into `Unsupported`: the server does not know the
    /// route.
    pub(crate) fn for_route(self, what: &'static str) -> Self {
        match self {
            Self::Problem { problem, .. } if matches!(problem.status, 404 | 405) => {
                Self::Unsupported { what }
            }
            other => other,
        }
    }
}

/// Whether a request with this status may succeed later.
pub(crate) fn is_transient(status: u16) -> bool {
    matches!(status, 408 | 429 | 500..)
}

/// Why there is no client for https.
const NO_TLS: &str = "TLS cannot be set up: without certificate authorities (the package ca-certificates, or SSL_CERT_FILE) only http:// works";

/// Whom a client trusts on https, and who it is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trust {
    /// A file with the certificate authorities (PEM), instead of the system's.
    pub(crate) authorities: Option<PathBuf>,
    /// A file with the client's certificate and its key (PEM).
    pub(crate) certificate: Option<PathBuf>,
}

impl Trust {
    /// Reads `RINGBACK_SERVER_CA_FILE` and `RINGBACK_CLIENT_CERT`.
    pub(crate) fn of_environment() -> Self {
        let file = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        Self { authorities: file("RINGBACK_SERVER_CA_FILE"), certificate: file("RINGBACK_CLIENT_CERT") }
    }
}

/// A server.
pub(crate) struct Client {
    http: reqwest::Client,
    server: Url,
    trust: Trust,
    access: Access,
}

impl Client {
    /// A client that has not connected yet.
    ///
    /// # Errors
    /// When TLS cannot be set up, or a file of `trust` cannot be read or used.
    pub(crate) fn new(server: Url, trust: Trust, access: Access) -> anyhow::Result<Self> {
        // It fails only when there is a provider already.
        rustls::crypto::ring::default_provider().install_default().ok();
        let http = builder(&server, &trust)?.read_timeout(READ_TIMEOUT).build().context(NO_TLS)?;
        Ok(Self { http, server, trust, access })
    }

    /// The same client without a limit on the pause before or within a response.
    ///
    /// # Errors
    /// When TLS cannot be set up, or a file of `trust` cannot be read or used.
    pub(crate) fn without_read_timeout(&self) -> anyhow::Result<Self> {
        let builder = builder(&self.server, &self.trust)?;
        let builder = builder.tcp_keepalive(KEEPALIVE).tcp_keepalive_interval(KEEPALIVE);
        let http = builder.build().context(NO_TLS)?;
        let Self { server, trust, access, .. } = self;
        Ok(Self { http, server: server.clone(), trust: trust.clone(), access: access.clone() })
    }

    /// Makes a call and reads the whole response within a time. Fails unless the status is one of success.
    pub(crate) async fn ask(&self, call: Call, within: Duration) -> Result<Reply, ClientError> {
        let whole = async {
            let response = self.open(call).await?;
            let status = response.status();
            let body = response.bytes().await.map_err(|error| cut_off(&error))?;
            Ok(Reply { status, body })
        };
        let slow = |_| ClientError::TimedOut { server: self.server_url(), within };
        tokio::time::timeout(within, whole).await.map_err(slow)?
    }

    /// Makes a call and reads the head of the response. The caller reads the body. Fails unless the status is one of
    /// success.
    pub(crate) async fn open(&self, call: Call) -> Result<Response, ClientError> {
        let url = self.url(&call.path, &call.query);
        let mut headers = call.headers;
        self.access.add_to(&mut headers);
        let mut request = self.http.request(call.method, url).headers(headers);
        if let Some((content_type, body)) = call.body {
            request = request.header(header::CONTENT_TYPE, content_type).body(body);
        }
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
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

    fn server_url(&self) -> String {
        shown(self.server.as_str()).trim_end_matches('/').to_owned()
    }

    fn unreachable(&self, error: &reqwest::Error) -> ClientError {
        let server = self.server_url();
        if error.is_timeout() && !error.is_connect() {
            return ClientError::TimedOut { server, within: READ_TIMEOUT };
        }
        let why = if error.is_timeout() {
            format!("no connection within {} s", CONNECT_TIMEOUT.as_secs())
        } else {
            root_cause(error)
        };
        ClientError::Unreachable { server, why }
    }

    async fn refusal(&self, mut response: Response) -> ClientError {
        let status = response.status();
        let value = response.headers().get(header::RETRY_AFTER);
        let retry_after = value.and_then(|value| value.to_str().ok()).and_then(retry_after);
        let mut body = Vec::new();
        // A problem document that ends early cannot be parsed below.
        while let Ok(Some(chunk)) = response.chunk().await {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_PROBLEM {
                break;
            }
        }
        match serde_json::from_slice::<Problem>(&body) {
            Ok(problem) => ClientError::Problem { problem: Box::new(problem), retry_after },
            Err(_) => ClientError::NotRingback { server: self.server_url(), status, retry_after },
        }
    }
}

fn builder(server: &Url, trust: &Trust) -> anyhow::Result<reqwest::ClientBuilder> {
    let builder = reqwest::Client::builder();
    let builder = if server.scheme() == "https" {
        with_trust(builder, trust)?
    } else {
        // Plain HTTP needs no certificate authorities, and a machine may have none.
        builder.tls_certs_only([])
    };
    Ok(builder
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .no_proxy()
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .user_agent(concat!("ringback/", env!("CARGO_PKG_VERSION"))))
}

fn with_trust(builder: reqwest::ClientBuilder, trust: &Trust) -> anyhow::Result<reqwest::ClientBuilder> {
    let read = |file: &Path| {
        let text = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        let text = without_mark(&text).with_context(|| format!("cannot use {}", file.display()))?;
        anyhow::Ok(text.to_vec())
    };
    let builder = match &trust.authorities {
        None => builder,
        Some(file) => {
            let authorities = Certificate::from_pem_bundle(&read(file)?);
            let authorities = authorities.with_context(|| {
                format!("{} (RINGBACK_SERVER_CA_FILE) is not in the PEM form", file.display())
            })?;
            builder.tls_certs_only(authorities)
        }
    };
    let Some(file) = &trust.certificate else { return Ok(builder) };
    let identity = Identity::from_pem(&read(file)?).with_context(|| {
        format!("{} (RINGBACK_CLIENT_CERT) has no certificate with its key in the PEM form", file.display())
    })?;
    Ok(builder.identity(identity))
}

/// Retry-After in seconds (RFC 9110, section 10.2.3). `None` for a date, which would need the server's clock.
fn retry_after(text: &str) -> Option<Duration> {
    text.trim().parse().ok().map(Duration::from_secs)
}

/// The error of a body that ends early.
pub(crate) fn cut_off(error: &reqwest::Error) -> ClientError {
    ClientError::CutOff { why: root_cause(error) }
}

/// The innermost cause, which is the one that people recognise, such as "Connection refused".
fn root_cause(error: &dyn std::error::Error) -> String {
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
        Client::new(server.parse().unwrap(), Trust::default(), Access::default()).unwrap()
    }

    #[test]
    fn the_path_of_the_server_comes_before_that_of_a_call() {
        let path = ["v1".to_owned(), "jobs".to_owned(), "a b".to_owned(), "x~y:@+=,".to_owned()];
        let url = client("http://h:1/ringback/").url(&path, &[("state", "a&b".to_owned())]);
        assert_eq!(url.as_str(), "http://h:1/ringback/v1/jobs/a%20b/x~y:@+=,?state=a%26b");
        assert_eq!(client("http://h:1").url(&path[..2], &[]).as_str(), "http://h:1/v1/jobs");
    }

    #[test]
    fn errors_that_may_pass_are_worth_a_retry() {
        for (status, again) in
            [(503, true), (500, true), (429, true), (408, true), (409, false), (422, false)]
        {
            let problem = Problem::new(StatusCode::from_u16(status).unwrap(), "");
            let error = ClientError::Problem { problem: Box::new(problem), retry_after: None };
            assert_eq!(error.is_transient(), again, "{status}");
        }
        assert!(ClientError::CutOff { why: String::new() }.is_transient());
        assert!(!ClientError::Unsupported { what: "x" }.is_transient());
    }

    #[test]
    fn retry_after_counts_in_seconds() {
        assert_eq!(retry_after(" 3 "), Some(Duration::from_secs(3)));
        assert_eq!(retry_after("-1"), None);
        assert_eq!(retry_after("soon"), None);
    }
}
