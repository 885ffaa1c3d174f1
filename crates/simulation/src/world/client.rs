//! The client of a simulation: calls the router of the API in the same process, without a network.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use http::{Method, Request};
use ringback_core::job::JobKey;
use serde_json::{Value, json};
use tokio::time::sleep;
use tower::ServiceExt as _;

use super::Simulation;

/// The most bytes that are read of an answer.
const MAX_ANSWER: usize = 1024 * 1024;

impl Simulation {
    /// Sends a request, logs it, and returns status and JSON (`Null` if none); status 0 if the API does not run.
    pub(crate) async fn call(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        let Some(router) = self.roles[0].router() else { return (0, Value::Null) };
        let request = Request::builder().method(method.clone()).uri(path);
        let (kind, body) = if body.is_null() {
            (None, Body::empty())
        } else {
            (Some("application/json"), Body::from(body.to_string()))
        };
        let request = match kind {
            Some(kind) => request.header(http::header::CONTENT_TYPE, kind),
            None => request,
        };
        let request = request.body(body).expect("a request");
        let response = router.oneshot(request).await.expect("the router answers");
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body(), MAX_ANSWER).await.unwrap_or_default();
        let body = serde_json::from_slice(&body).unwrap_or_default();
        self.history.note(format_args!("{method} {path}: {status}"));
        (status, body)
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.call(Method::POST, path, body).await
    }

    /// Submits a job with these fields, `topic` and `id` added, and remembers its key in `submitted`.
    pub(crate) async fn submit(&mut self, topic: &str, id: &str, mut fields: Value) -> (u16, Value) {
        let key = JobKey { topic: topic.parse().expect("a topic"), id: id.parse().expect("an id") };
        if !self.submitted.contains(&key) {
            self.submitted.push(key);
        }
        fields["topic"] = json!(topic);
        fields["id"] = json!(id);
        self.post("/v1/jobs", &fields).await
    }

    /// Submits a job until the API accepts it. Retries after 300 ms if the API is down or answers 503; else panics.
    pub(crate) async fn submit_surely(&mut self, topic: &str, id: &str, fields: &Value) {
        loop {
            let (status, answer) = self.submit(topic, id, fields.clone()).await;
            match status {
                200 | 201 => return,
                0 | 503 => sleep(Duration::from_millis(300)).await,
                _ => panic!("submit: {status} {answer}"),
            }
        }
    }

    pub(crate) async fn cancel(&self, topic: &str, id: &str) -> (u16, Value) {
        self.call(Method::DELETE, &format!("/v1/jobs/{topic}/{id}"), &Value::Null).await
    }
}
