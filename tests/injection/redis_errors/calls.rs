//! Requests that lead to each call of the store.

use std::time::Duration;

use http::Method;
use ringback_testkit::recorded::{Recorded, RecordedJob};
use ringback_testkit::{RedisErrors, RedisFault, eventually};
use serde_json::{Value, json};

use super::table::Outcome;

/// How long it may take until a repeated request succeeds.
const SOON: Duration = Duration::from_secs(20);

pub(crate) struct Client<'a> {
    pub(crate) recorded: &'a Recorded,
    pub(crate) api: String,
    pub(crate) url: String,
    /// A receiver whose deliveries are not judged.
    pub(crate) aside: String,
    pub(crate) proxy: &'a RedisErrors,
}

impl Client<'_> {
    /// Makes a request whose call gets an error, checks its answer, and repeats it until it succeeds.
    pub(crate) async fn answered(
        &self,
        call: &str,
        (name, fault): (&str, RedisFault),
        wanted: Outcome,
        round: &str,
    ) {
        let id = format!("{call}-{round}");
        let request = self.prepare(call, &id).await;
        self.proxy.arm(call, fault);
        let (status, answer) = self.send(&request).await;
        let is_right = match wanted {
            Outcome::Unavailable => status == 503 && answer.contains("\"detail\""),
            Outcome::Served => (200..300).contains(&status),
            Outcome::Repeated => false,
        };
        assert!(is_right, "{call}: {name} is answered {status} {answer}, not {wanted:?}");
        assert!(self.proxy.left().is_empty(), "{call} was made");
        eventually(SOON, &format!("{call} succeeds after {name}"), async || {
            match self.send(&request).await {
                (status @ 200..500, _) => Ok(status),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    }

    /// Work for carriers and notifiers.
    pub(crate) async fn work(&self, round: &str) {
        for n in 0..12 {
            let path = if n % 4 == 0 { "/flaky" } else { "/hook" };
            let job =
                RecordedJob::new("push", &format!("job-{round}-{n}"), Some(format!("{}{path}", self.url)));
            let job = RecordedJob { delay: (n % 2 == 0).then_some(40 + n), timeout: Some(1_000), ..job };
            self.recorded.submit(&self.api, &job).await;
        }
        self.ok("POST", "jobs", json!({"topic": "late", "id": round, "retry": {"preset": "none"}})).await;
        let ask = json!({"max": 100, "ttr": "100ms", "wait": 0});
        let reserve = (Method::POST, format!("{}/v1/topics/late/reserve", self.api), Some(ask));
        let look = (Method::GET, format!("{}/v1/jobs/late/{round}", self.api), None);
        eventually(SOON, "the lease of a consumer has run out", async || {
            self.send(&reserve).await;
            match self.send(&look).await {
                (200, job) if job.contains("\"state\":\"dead\"") => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    }

    async fn prepare(&self, call: &str, id: &str) -> (Method, String, Option<Value>) {
        let far = json!({"topic": "far", "id": id, "url": "http://127.0.0.1:9/", "delay": "1h"});
        let near = json!({"topic": id, "id": "one"});
        let path = |path: &str| format!("{}/v1/{path}", self.api);
        let job = path(&format!("jobs/far/{id}"));
        match call {
            "cancel" | "reschedule" | "get" | "replace" | "page" => {
                self.ok("POST", "jobs", far.clone()).await;
            }
            "run" => self.ok("POST", "jobs", with(far.clone(), "url", format!("{}/hook", self.aside))).await,
            "pull" | "settle_receipts" | "renew" => self.ok("POST", "jobs", near).await,
            _ => {}
        }
        let reserve = (path(&format!("topics/{id}/reserve")), json!({"ttr": "30s", "wait": 0}));
        match call {
            "submit" => (Method::POST, path("jobs"), Some(far)),
            "replace" => (Method::POST, path("jobs"), Some(with(far, "if_exists", "replace".to_owned()))),
            "cancel" => (Method::DELETE, job, None),
            "reschedule" => (Method::PATCH, job, Some(json!({"delay": "2h"}))),
            "run" => (Method::POST, format!("{job}/run"), None),
            "get" => (Method::GET, job, None),
            "page" => (Method::GET, path("jobs"), None),
            "pull" => (Method::POST, reserve.0, Some(reserve.1)),
            "settle_receipts" | "renew" => {
                let (status, answer) = self.send(&(Method::POST, reserve.0, Some(reserve.1))).await;
                let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
                let receipt = answer["jobs"][0]["receipt"].as_str();
                let receipt = receipt.unwrap_or_else(|| panic!("{status} {answer}"));
                let action = if call == "renew" { "renew" } else { "finish" };
                (Method::POST, path(&format!("receipts/{receipt}/{action}")), None)
            }
            other => panic!("no request leads to {other}"),
        }
    }

    /// A call that has to succeed, sooner or later.
    async fn ok(&self, method: &str, path: &str, body: Value) {
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let request = (method, format!("{}/v1/{path}", self.api), Some(body));
        eventually(SOON, path, async || match self.send(&request).await {
            (200..300, _) => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
    }

    async fn send(&self, (method, url, body): &(Method, String, Option<Value>)) -> (u16, String) {
        let answer = self.recorded.other(method.clone(), url, body.as_ref()).await;
        answer.unwrap_or((0, "no answer".to_owned()))
    }
}

fn with(mut job: Value, field: &str, value: String) -> Value {
    job[field] = value.into();
    job
}
