//! HTTP requests to a stack's API by path: one method per HTTP method, with a JSON body or none.
//!
//! The routes that tests call by name are in `routes`.

use bytes::Bytes;
use http::Method;
use serde_json::Value;

use super::{Reply, Stack};
use crate::http_client::http_client;

/// The content type of one JSON document.
pub(crate) const JSON: &str = "application/json";
/// The content type of one JSON document per line.
pub(crate) const NDJSON: &str = "application/x-ndjson";

impl Stack {
    /// `GET`.
    pub async fn get(&self, path: &str) -> Reply {
        self.request(Method::GET, path, None).await
    }

    /// `DELETE`.
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

    /// A request with any method and a JSON body.
    pub async fn send(&self, method: Method, path: &str, body: &Value) -> Reply {
        self.request(method, path, Some((JSON, body.to_string().into()))).await
    }

    /// A request with any method; the body, if there is one, comes with its content type.
    ///
    /// # Panics
    /// When no response comes.
    pub async fn request(&self, method: Method, path: &str, body: Option<(&str, Bytes)>) -> Reply {
        match body {
            Some((content_type, body)) => {
                self.request_with(method, path, &[("content-type", content_type)], body).await
            }
            None => self.request_with(method, path, &[], Bytes::new()).await,
        }
    }

    /// A request with exactly these headers besides those of HTTP itself. A name may occur more than once.
    ///
    /// # Panics
    /// When no response comes.
    pub async fn request_with(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Reply {
        let request = self.http.request(method, self.url(path));
        send(
            headers.iter().fold(request, |request, (name, value)| request.header(*name, *value)),
            body.into(),
        )
        .await
    }

    /// `POST` with a JSON body, by a client of its own: the future borrows nothing, so that it can be spawned,
    /// and dropping it closes the connection.
    ///
    /// # Panics
    /// When no response comes.
    pub fn post_detached(&self, path: &str, body: &Value) -> impl Future<Output = Reply> + Send + use<> {
        let request = http_client().post(self.url(path)).header("content-type", JSON);
        send(request, body.to_string().into())
    }
}

async fn send(request: reqwest::RequestBuilder, body: Bytes) -> Reply {
    let request = if body.is_empty() { request } else { request.body(body) };
    let reply = async { Reply::read(request.send().await?).await };
    reply.await.unwrap_or_else(|error| panic!("no response: {error:?}"))
}
