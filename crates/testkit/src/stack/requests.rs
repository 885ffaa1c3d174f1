//! HTTP requests to a stack's API by path, one method per HTTP method; and the responses, read to their end.
//!
//! The routes that tests call by name are in `routes`.

use bytes::Bytes;
use http::{HeaderMap, Method};
use serde_json::Value;

use super::Stack;

/// The content type of one JSON document.
const JSON: &str = "application/json";
/// The content type of one JSON document per line.
const NDJSON: &str = "application/x-ndjson";

impl Stack {
    pub async fn get(&self, path: &str) -> Reply {
        self.request(Method::GET, path, None).await
    }

    pub async fn delete(&self, path: &str) -> Reply {
        self.request(Method::DELETE, path, None).await
    }

    /// `POST` with a JSON body. For a `POST` without a body use [`Stack::post_empty`].
    pub async fn post(&self, path: &str, body: &Value) -> Reply {
        self.send(Method::POST, path, body).await
    }

    /// `POST` without a body.
    pub async fn post_empty(&self, path: &str) -> Reply {
        self.request(Method::POST, path, None).await
    }

    /// `POST` with a body of JSON lines (`application/x-ndjson`).
    pub async fn post_lines(&self, path: &str, lines: impl Into<Bytes>) -> Reply {
        self.request(Method::POST, path, Some((NDJSON, lines.into()))).await
    }

    /// `PUT` with a JSON body.
    pub async fn put(&self, path: &str, body: &Value) -> Reply {
        self.send(Method::PUT, path, body).await
    }

    /// `PATCH` with a JSON body.
    pub async fn patch(&self, path: &str, body: &Value) -> Reply {
        self.send(Method::PATCH, path, body).await
    }

    /// Sends a request with any method and a JSON body.
    pub async fn send(&self, method: Method, path: &str, body: &Value) -> Reply {
        self.request(method, path, Some((JSON, body.to_string().into()))).await
    }

    /// Sends a request with any method and optionally a body of a content type. Panics without a complete response.
    pub async fn request(&self, method: Method, path: &str, body: Option<(&str, Bytes)>) -> Reply {
        let mut request = self.http.request(method, self.url(path));
        if let Some((content_type, body)) = body {
            request = request.header("content-type", content_type).body(body);
        }
        let reply = async { Reply::read(request.send().await?).await };
        reply.await.unwrap_or_else(|error| panic!("no response: {error:?}"))
    }
}

/// A response of the API.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
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
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The body as JSON; `null` when the body is empty. Panics if it is not JSON.
    pub fn json(&self) -> Value {
        if self.body.is_empty() {
            return Value::Null;
        }
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error} in a response {}: {:?}", self.status, self.body))
    }

    /// The body as JSON. Panics if the response has another status.
    #[track_caller]
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{:?}", self.body);
        self.json()
    }

    /// The problem in the body of a refusal. Panics if its status is another, or if `detail` does not contain `part`.
    #[track_caller]
    pub fn refused(&self, status: u16, part: &str) -> Value {
        let problem = self.expect(status);
        assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains(part)), "{problem}");
        problem
    }

    /// The status and the body as JSON.
    pub fn parts(&self) -> (u16, Value) {
        (self.status, self.json())
    }
}
