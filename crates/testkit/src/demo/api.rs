//! The API calls of the demo: check that the API is up, submit a job, cancel a job and read a job.

use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use jiff::Timestamp;
use reqwest::{RequestBuilder, Response};
use serde_json::Value;

use crate::network::https_client;

/// The limit of one call.
const TIMEOUT: Duration = Duration::from_secs(5);

/// An API by its URL.
pub(crate) struct Api {
    url: String,
    http: reqwest::Client,
}

impl Api {
    pub(crate) fn new(url: &str) -> Self {
        Self { url: url.trim_end_matches('/').to_owned(), http: https_client() }
    }

    /// Checks that a Ringback with a store answers. Each error says what is wrong.
    pub(crate) async fn is_up(&self) -> anyhow::Result<()> {
        let url = &self.url;
        let answer = match self.http.get(self.at("/v1/stats")).timeout(TIMEOUT).send().await {
            Err(error) if error.is_connect() => bail!("nothing answers at {url}; run make up first"),
            other => other.with_context(|| format!("no answer from {url}"))?,
        };
        let status = answer.status();
        let is_stats =
            |text: &str| serde_json::from_str::<Value>(text).is_ok_and(|v| v["states"].is_object());
        let text = answer.text().await.with_context(|| format!("no answer from {url}"))?;
        ensure!(status != 503, "the API at {url} is up, but has no store: {text}");
        ensure!(status == 200 && is_stats(&text), "what answers at {url} with {status} is not Ringback");
        Ok(())
    }

    /// Submits a job and returns its due time. Fails unless the job is new (201).
    pub(crate) async fn submit(&self, job: &Value) -> anyhow::Result<Timestamp> {
        let request = self.http.post(self.at("/v1/jobs")).header("content-type", "application/json");
        let (status, answer) = json(request.body(job.to_string())).await?;
        ensure!(status == 201, "the submit of {job} is answered {status}: {answer}");
        let due = answer["due_at"].as_str().unwrap_or_default();
        due.parse().with_context(|| format!("no due time in {answer}"))
    }

    /// Cancels a job. Fails unless the API answers 200.
    pub(crate) async fn cancel(&self, topic: &str, id: &str) -> anyhow::Result<()> {
        let (status, answer) = json(self.http.delete(self.job(topic, id))).await?;
        ensure!(status == 200, "the cancel of {topic}/{id} is answered {status}: {answer}");
        Ok(())
    }

    /// Reads a job. Fails unless the API answers 200.
    pub(crate) async fn look(&self, topic: &str, id: &str) -> anyhow::Result<Value> {
        let (status, answer) = json(self.http.get(self.job(topic, id))).await?;
        ensure!(status == 200, "{topic}/{id} is answered {status}: {answer}");
        Ok(answer)
    }

    fn job(&self, topic: &str, id: &str) -> String {
        self.at(&format!("/v1/jobs/{topic}/{id}"))
    }

    fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }
}

async fn json(request: RequestBuilder) -> anyhow::Result<(u16, Value)> {
    let lost = "the API has stopped answering";
    let answer: Response = request.timeout(TIMEOUT).send().await.context(lost)?;
    let status = answer.status().as_u16();
    let text = answer.text().await.context(lost)?;
    let value =
        serde_json::from_str(&text).with_context(|| format!("an answer {status} is not JSON: {text}"))?;
    Ok((status, value))
}
