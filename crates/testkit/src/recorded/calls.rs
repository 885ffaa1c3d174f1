//! Calls of clients and consumers, each written to the history with its outcome.

use std::time::Duration;

use http::Method;
use reqwest::RequestBuilder;
use ringback_wire::{ReserveResponse, ReservedJob};
use serde_json::{Value, json};

use super::{Recorded, RecordedJob, no_headers};
use crate::history::{
    Answered, Call, Digest, Entry, Lease, MoveCall, MoveKind, Reserve, Settle, SettleKind, Submit, millis,
};

/// How long a client waits for an answer.
const CALL: Duration = Duration::from_secs(10);

impl Recorded {
    /// Submits a job at the API with this base URL. Returns the status and the answer; `None` without a complete answer.
    pub async fn submit(&self, api: &str, job: &RecordedJob) -> Option<(u16, Value)> {
        let n = self.submitted(job);
        let mut request = self.http.post(format!("{api}/v1/jobs")).header("content-type", "application/json");
        if let Some(key) = &job.key {
            request = request.header("idempotency-key", key);
        }
        self.call(n, request.body(job.text())).await
    }

    /// Submits jobs as one batch. Returns the status of each, or that of the whole batch if it failed; `None` without
    /// an answer.
    pub async fn submit_all(&self, api: &str, jobs: &[RecordedJob]) -> Vec<Option<u16>> {
        let numbers: Vec<_> = jobs.iter().map(|job| self.submitted(job)).collect();
        let texts: Vec<_> = jobs.iter().map(RecordedJob::text).collect();
        let request =
            self.http.post(format!("{api}/v1/jobs/batch")).header("content-type", "application/json");
        let answer = self.answer(request.body(format!("[{}]", texts.join(",")))).await;
        let (whole, text) = answer.map_or((None, String::new()), |(status, text)| (Some(status), text));
        let json: Value = serde_json::from_str(&text).unwrap_or_default();
        let place = numbers.into_iter().enumerate();
        place.map(|(place, n)| self.ended(n, whole, &json["results"][place])).collect()
    }

    /// Writes the outcome of a job in a batch. Returns its own status, or an error status of the whole batch.
    fn ended(&self, n: u64, whole: Option<u16>, result: &Value) -> Option<u16> {
        let own = result["status"].as_u64().and_then(|status| u16::try_from(status).ok());
        let status = own.or(whole.filter(|status| *status >= 400));
        self.history.write_outcome(n, status, &result["job"]);
        status
    }

    /// Writes the request of a submit. Returns the number of the call.
    fn submitted(&self, job: &RecordedJob) -> u64 {
        let n = self.history.next();
        self.history.write(&Entry::Submit(Submit {
            t: self.history.t(),
            n,
            job: &job.name(),
            url: job.url.as_deref(),
            body: Digest::of(job.body.as_bytes()),
            headers: no_headers(),
            at: None,
            delay: job.delay,
            policy: job.policy.as_ref().map(|(number, _)| *number),
            timeout: job.timeout,
            key: job.key.as_deref(),
            replace: false,
            store: 0,
        }));
        n
    }

    pub async fn cancel(&self, api: &str, job: &RecordedJob) -> Option<(u16, Value)> {
        let n = self.history.next();
        self.history.write(&Entry::Cancel(Call { t: self.history.t(), n, job: &job.name() }));
        self.call(n, self.http.delete(format!("{api}/v1/jobs/{}", job.name()))).await
    }

    /// Runs, revives or purges a job. Returns the status and the answer; `None` without a complete answer. Panics for
    /// a reschedule.
    pub async fn move_job(&self, api: &str, job: &RecordedJob, kind: MoveKind) -> Option<(u16, Value)> {
        let n = self.history.next();
        let (at, delay) = (None, None);
        self.history.write(&Entry::Move(MoveCall {
            t: self.history.t(),
            n,
            job: &job.name(),
            kind,
            at,
            delay,
        }));
        let (method, path) = match kind {
            MoveKind::Run => (Method::POST, format!("jobs/{}/run", job.name())),
            MoveKind::Revive => (Method::POST, format!("jobs/{}/revive", job.name())),
            MoveKind::Purge => (Method::DELETE, format!("topics/{}/dead/{}", job.topic, job.id)),
            MoveKind::Reschedule => panic!("a reschedule needs a time"),
        };
        self.call(n, self.http.request(method, format!("{api}/v1/{path}"))).await
    }

    pub async fn reserve(&self, api: &str, topic: &str, ask: &Value) -> Vec<ReservedJob> {
        let n = self.history.next();
        self.history.write(&Entry::Reserve(Reserve { t: self.history.t(), n }));
        let request = with_json(self.http.post(format!("{api}/v1/topics/{topic}/reserve")), ask);
        let Some((200, text)) = self.answer(request).await else {
            self.history.write_outcome(n, None, &Value::Null);
            return Vec::new();
        };
        let answer: ReserveResponse = serde_json::from_str(&text).expect("the answer to a reserve");
        let t = self.history.t();
        self.history.write(&Entry::Ok(Answered { t, n, status: Some(200), ..Answered::default() }));
        for job in &answer.jobs {
            self.history.write(&Entry::Lease(Lease {
                t,
                n,
                job: &format!("{}/{}", job.topic, job.id),
                token: &job.receipt,
                attempt: job.attempt,
                deadline: millis(&job.deadline.as_str().into()).expect("a time"),
                body: Digest::of(job.body.as_ref().map_or("", |body| body.get()).as_bytes()),
            }));
        }
        answer.jobs
    }

    /// Settles a pull job by its receipt, or renews its lease by 5 seconds. Returns the status and the answer; `None`
    /// without a complete answer.
    pub async fn settle(&self, api: &str, receipt: &str, kind: SettleKind) -> Option<(u16, Value)> {
        let n = self.history.next();
        self.history.write(&Entry::Settle(Settle { t: self.history.t(), n, token: receipt, kind }));
        let request = self.http.post(format!("{api}/v1/receipts/{receipt}/{kind}"));
        let request =
            if kind == SettleKind::Renew { with_json(request, &json!({"ttr": "5s"})) } else { request };
        self.call(n, request).await
    }

    /// Makes any other call, which is not written to the history. Returns the status and the text; `None` without an
    /// answer.
    pub async fn other(&self, method: Method, url: &str, body: Option<&Value>) -> Option<(u16, String)> {
        let request = self.http.request(method, url);
        self.answer(if let Some(body) = body { with_json(request, body) } else { request }).await
    }

    /// Posts JSON lines, which are not written to the history. Returns the status and the text; `None` without an
    /// answer.
    pub async fn send_lines(&self, url: &str, lines: &str) -> Option<(u16, String)> {
        let request = self.http.post(url).header("content-type", "application/x-ndjson");
        self.answer(request.body(lines.to_owned())).await
    }

    /// Sends the request of call `n`, and writes its outcome.
    async fn call(&self, n: u64, request: RequestBuilder) -> Option<(u16, Value)> {
        let answer = self.answer(request).await;
        let json: Value =
            answer.as_ref().and_then(|(_, text)| serde_json::from_str(text).ok()).unwrap_or_default();
        let status = answer.map(|(status, _)| status);
        self.history.write_outcome(n, status, &json);
        status.map(|status| (status, json))
    }

    /// The status and the text of an answer; `None` if it is not complete within [`CALL`].
    async fn answer(&self, request: RequestBuilder) -> Option<(u16, String)> {
        let answer = request.timeout(CALL).send().await.ok()?;
        let status = answer.status().as_u16();
        Some((status, answer.text().await.ok()?))
    }
}

fn with_json(request: RequestBuilder, body: &Value) -> RequestBuilder {
    request.header("content-type", "application/json").body(body.to_string())
}
