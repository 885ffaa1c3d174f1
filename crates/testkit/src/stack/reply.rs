//! A response of the API, read to its end: status, headers and body.

use bytes::Bytes;
use http::HeaderMap;
use serde_json::Value;

/// A response of the API.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// All headers.
    pub headers: HeaderMap,
    /// The body, unchanged.
    pub body: Bytes,
}

impl Reply {
    /// Reads a response to its end.
    ///
    /// # Errors
    /// When the connection breaks before the body is complete.
    pub async fn read(response: reqwest::Response) -> Result<Self, reqwest::Error> {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Ok(Self { status, headers, body: response.bytes().await? })
    }

    /// The value of a header; `None` when it is absent or not text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The body as JSON; `null` when it is empty.
    ///
    /// # Panics
    /// When the body is not JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        if self.body.is_empty() {
            return Value::Null;
        }
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error} in a response {}: {:?}", self.status, self.body))
    }

    /// The body as JSON, of a response that must have this status.
    ///
    /// # Panics
    /// When the status is another one.
    #[must_use]
    #[track_caller]
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{:?}", self.body);
        self.json()
    }

    /// The status and the body as JSON.
    #[must_use]
    pub fn parts(&self) -> (u16, Value) {
        (self.status, self.json())
    }
}
