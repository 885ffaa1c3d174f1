//! Calls of the API, to its processes in turn, and the outcome of each: done, refused or unknown.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use reqwest::Method;
use ringback_testkit::history::History;
use serde_json::Value;

/// The limit of a call that does not wait for jobs.
const LIMIT: Duration = Duration::from_secs(3);

/// The API of an installation.
pub(crate) struct Api {
    http: reqwest::Client,
    bases: Vec<String>,
    next: AtomicUsize,
}

/// The outcome of a call.
#[derive(Debug)]
pub(crate) enum CallOutcome {
    /// 2xx.
    Ok(u16, Bytes),
    /// 4xx: nothing was changed.
    Refused(u16),
    Unknown,
}

impl CallOutcome {
    /// The JSON of a success; null for any other outcome.
    pub(crate) fn json(&self) -> Value {
        match self {
            Self::Ok(_, body) => serde_json::from_slice(body).unwrap_or_default(),
            Self::Refused(_) | Self::Unknown => Value::Null,
        }
    }

    pub(crate) const fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown)
    }

    /// Writes the outcome of the call `n` about one job.
    pub(crate) fn write(&self, history: &History, n: u64) {
        let status = match self {
            Self::Ok(status, _) | Self::Refused(status) => Some(*status),
            Self::Unknown => None,
        };
        history.write_outcome(n, status, &self.json());
    }
}

impl Api {
    pub(crate) fn new(bases: Vec<String>) -> Self {
        Self { http: ringback_testkit::http_client(), bases, next: AtomicUsize::new(0) }
    }

    pub(crate) async fn call(&self, method: Method, path: &str, body: Option<String>) -> CallOutcome {
        self.call_with(method, path, body, None, LIMIT).await
    }

    pub(crate) async fn call_with(
        &self,
        method: Method,
        path: &str,
        body: Option<String>,
        key: Option<&str>,
        limit: Duration,
    ) -> CallOutcome {
        let base = &self.bases[self.next.fetch_add(1, Ordering::Relaxed) % self.bases.len()];
        let mut request = self.http.request(method, format!("{base}{path}")).timeout(limit);
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body);
        }
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let Ok(answer) = request.send().await else { return CallOutcome::Unknown };
        let status = answer.status().as_u16();
        match (status, answer.bytes().await) {
            (200..300, Ok(body)) => CallOutcome::Ok(status, body),
            (400..500, Ok(_)) => CallOutcome::Refused(status),
            _ => CallOutcome::Unknown,
        }
    }
}
