//! The calls of the API that tests make by name: jobs, topics, receipts, import and export, check and statistics.

use std::time::Duration;

use bytes::Bytes;
use ringback_wire::CheckResponse;
use serde_json::Value;

use super::Stack;
use super::requests::Reply;
use crate::time::eventually;

impl Stack {
    /// Repeats a `GET` until `is_right` accepts its answer, and returns the answer. Panics after `within`, or for a
    /// status other than 200.
    pub async fn wait_get(&self, path: &str, within: Duration, is_right: impl Fn(&Value) -> bool) -> Value {
        eventually(within, &format!("GET {path} shows what it should"), async || {
            let answer = self.get(path).await.expect(200);
            if is_right(&answer) { Ok(answer) } else { Err(answer) }
        })
        .await
    }

    /// Repeats a `GET` until it has a status, and returns the body. Panics after `within`.
    pub async fn wait_status(&self, path: &str, status: u16, within: Duration) -> Value {
        eventually(within, &format!("GET {path} is answered {status}"), async || {
            let reply = self.get(path).await;
            if reply.status == status { Ok(reply.json()) } else { Err(format!("{reply:?}")) }
        })
        .await
    }

    /// Submits one job, given as the exact text to send.
    pub async fn submit_text(&self, job: impl Into<Bytes>) -> Reply {
        self.request(http::Method::POST, "/v1/jobs", Some(("application/json", job.into()))).await
    }

    /// Submits one job. Returns the status and the body.
    pub async fn submit(&self, job: &Value) -> (u16, Value) {
        self.submit_text(job.to_string()).await.parts()
    }

    /// Submits a job that must be new (201), and returns the body.
    pub async fn accept(&self, job: &Value) -> Value {
        let (status, answer) = self.submit(job).await;
        assert_eq!(status, 201, "{job} is answered {answer}");
        answer
    }

    /// Submits many jobs as a JSON array. Returns the status and the body.
    pub async fn batch(&self, jobs: &[Value]) -> (u16, Value) {
        self.post("/v1/jobs/batch", &jobs.into()).await.parts()
    }

    /// Reads a job. Returns the status and the body.
    pub async fn job(&self, topic: &str, id: &str) -> (u16, Value) {
        self.get(&job_path(topic, id)).await.parts()
    }

    /// Cancels a job. Returns the status and the body.
    pub async fn cancel(&self, topic: &str, id: &str) -> (u16, Value) {
        self.delete(&job_path(topic, id)).await.parts()
    }

    /// Gives a job another due time (`{"delay":…}` or `{"at":…}`). Returns the status and the body.
    pub async fn reschedule(&self, topic: &str, id: &str, when: &Value) -> (u16, Value) {
        self.patch(&job_path(topic, id), when).await.parts()
    }

    /// Makes a job due now. Returns the status and the body.
    pub async fn run(&self, topic: &str, id: &str) -> (u16, Value) {
        self.post_empty(&format!("{}/run", job_path(topic, id))).await.parts()
    }

    /// Makes one dead job due again. Returns the status and the body.
    pub async fn revive(&self, topic: &str, id: &str) -> (u16, Value) {
        self.post_empty(&format!("{}/revive", job_path(topic, id))).await.parts()
    }

    /// The recorded attempts of a job, oldest first.
    pub async fn attempts(&self, topic: &str, id: &str) -> Vec<Value> {
        items(&self.get(&format!("{}/attempts", job_path(topic, id))).await.expect(200))
    }

    /// Sets the policy of a topic, new or not. Panics for a status other than 200 and 201.
    pub async fn set_policy(&self, topic: &str, policy: &Value) -> Reply {
        let reply = self.put(&topic_path(topic), policy).await;
        assert!(matches!(reply.status, 200 | 201), "{} {:?}", reply.status, reply.body);
        reply
    }

    /// Reads a topic: its policy and its counts.
    pub async fn topic(&self, topic: &str) -> Value {
        self.get(&topic_path(topic)).await.expect(200)
    }

    /// Reserves pull jobs. Returns the reserved jobs; none when the wait ended without one.
    pub async fn reserve(&self, topic: &str, ask: &Value) -> Vec<Value> {
        let answer = self.post(&format!("{}/reserve", topic_path(topic)), ask).await.expect(200);
        answer["jobs"].as_array().unwrap_or_else(|| panic!("no jobs in {answer}")).clone()
    }

    /// Reserves exactly one pull job, and returns it.
    pub async fn reserve_one(&self, topic: &str, ask: &Value) -> Value {
        let mut jobs = self.reserve(topic, ask).await;
        assert_eq!(jobs.len(), 1, "{jobs:?}");
        jobs.remove(0)
    }

    /// Posts `body` to the route `action` of a reserved job's receipt: `finish`, `retry`, `bury`, `release` or `renew`.
    pub async fn settle(&self, reserved: &Value, action: &str, body: &Value) -> Reply {
        let receipt = reserved["receipt"].as_str().unwrap_or_else(|| panic!("no receipt in {reserved}"));
        self.post(&format!("/v1/receipts/{receipt}/{action}"), body).await
    }

    /// Imports jobs, one JSON document a line.
    pub async fn import_lines(&self, lines: impl Into<Bytes>) -> Reply {
        self.post_lines("/v1/import", lines).await
    }

    /// Imports jobs, 5,000 a call. Panics unless all are new.
    pub async fn import(&self, jobs: &[Value]) {
        for jobs in jobs.chunks(5000) {
            let lines: Vec<_> = jobs.iter().map(ToString::to_string).collect();
            let answer = self.import_lines(lines.join("\n")).await.json();
            assert_eq!(answer["created"], jobs.len(), "{}", answer["problems"][0]);
        }
    }

    /// All pages of a list, each as its items, by following `next`. `path` must have a query already.
    pub async fn pages(&self, path: &str) -> Vec<Vec<Value>> {
        let (mut pages, mut next) = (Vec::new(), String::new());
        loop {
            let page = self.get(&format!("{path}{next}")).await.expect(200);
            pages.push(items(&page));
            let Some(cursor) = page["next"].as_str() else {
                assert_eq!(page["next"], Value::Null);
                return pages;
            };
            next = format!("&cursor={cursor}");
        }
    }

    /// `GET /v1/check`.
    pub async fn check(&self) -> CheckResponse {
        check(&self.get("/v1/check").await)
    }

    /// `POST /v1/check/repair`.
    pub async fn repair(&self) -> CheckResponse {
        check(&self.post_empty("/v1/check/repair").await)
    }

    /// `GET /v1/stats`.
    pub async fn stats(&self) -> Value {
        self.get("/v1/stats").await.expect(200)
    }

    /// The number of jobs in a state, from the statistics, which may be a second old.
    pub async fn count_in(&self, state: &str) -> u64 {
        let stats = self.stats().await;
        stats["states"][state].as_u64().unwrap_or_else(|| panic!("no count of {state} in {stats}"))
    }

    /// Waits until exactly `count` jobs are in a state. Panics after `within`.
    pub async fn wait_count(&self, state: &str, count: u64, within: Duration) {
        eventually(within, &format!("{count} jobs are {state}"), async || match self.count_in(state).await {
            n if n == count => Ok(()),
            n => Err(format!("{n} are")),
        })
        .await;
    }

    /// Waits until a job is in a state, and returns the job. Panics after `within`.
    pub async fn wait_state(&self, topic: &str, id: &str, state: &str, within: Duration) -> Value {
        eventually(within, &format!("{topic}/{id} is {state}"), async || {
            let (status, job) = self.job(topic, id).await;
            if status == 200 && job["state"] == state { Ok(job) } else { Err(format!("{status} {job}")) }
        })
        .await
    }
}

fn job_path(topic: &str, id: &str) -> String {
    format!("/v1/jobs/{topic}/{id}")
}

fn topic_path(topic: &str) -> String {
    format!("/v1/topics/{topic}")
}

fn items(page: &Value) -> Vec<Value> {
    page["items"].as_array().unwrap_or_else(|| panic!("no items in {page}")).clone()
}

fn check(reply: &Reply) -> CheckResponse {
    serde_json::from_value(reply.expect(200)).expect("a check")
}
