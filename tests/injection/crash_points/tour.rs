//! Makes every call of the API, round after round and on topics of its own, so that every call of the store is made.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::Method;
use redis::Client;
use ringback_testkit::recorded::Recorded;
use ringback_testkit::{Answer, Sink, Stack};
use serde_json::{Value, json};
use tokio::time::timeout;

/// How long a tour listens to events.
const LISTEN: Duration = Duration::from_millis(100);

pub(crate) struct Tour {
    recorded: Arc<Recorded>,
    apis: Vec<String>,
    /// The admin ports of all processes.
    admins: Vec<String>,
    /// The server, if there is one, to make it forget the function library.
    redis: Option<Client>,
    url: String,
}

impl Tour {
    pub(crate) fn new(recorded: &Arc<Recorded>, apis: &[String], stack: &Stack, sink: &Sink) -> Self {
        sink.answer_path("/gone", Answer::status(410));
        sink.answer_path("/fails", Answer::status(500));
        let processes = stack.apis.iter().chain(&stack.carriers).chain(&stack.notifiers).chain(&stack.ups);
        let admins = processes.map(|process| format!("http://{}", process.admin())).collect();
        let redis =
            stack.ups.is_empty().then(|| Client::open(stack.store_url()).expect("the URL of a server"));
        Self { recorded: Arc::clone(recorded), apis: apis.to_vec(), admins, redis, url: sink.url("") }
    }

    pub(crate) async fn run(self, is_over: Arc<AtomicBool>) {
        let mut round = 0;
        while !is_over.load(Ordering::SeqCst) {
            self.round(round).await;
            round += 1;
        }
    }

    /// Makes every call of the API once. In every fourth round Redis also forgets the function library.
    pub(crate) async fn round(&self, n: usize) {
        let calls = async {
            tokio::join!(
                self.jobs(n),
                self.dead_jobs(n),
                self.many_jobs(n),
                self.pull_jobs(n),
                self.topics(n)
            )
        };
        tokio::join!(calls, self.schedules(n), self.reads());
        if n % 4 == 1 {
            self.flush_functions().await;
        }
    }

    async fn jobs(&self, n: usize) {
        let job = |id: &str| json!({"topic": "aside", "id": format!("{id}-{n}"), "url": format!("{}/ok", self.url)});
        let far = |id: &str| with(job(id), "delay", "1h".into());
        self.post(n, "jobs/batch", &json!([far("moved"), far("run"), job("now"), far("again")])).await;
        self.post(n, "jobs", &with(with(far("again"), "body", n.into()), "if_exists", "replace".into()))
            .await;
        self.call(n, Method::PATCH, &format!("jobs/aside/moved-{n}"), Some(&json!({"delay": "30ms"}))).await;
        self.post(n, &format!("jobs/aside/run-{n}/run"), &Value::Null).await;
        self.call(n, Method::GET, &format!("jobs/aside/again-{n}?include=request"), None).await;
        self.call(n, Method::GET, &format!("jobs/aside/again-{n}"), None).await;
        self.call(n, Method::DELETE, &format!("jobs/aside/again-{n}"), None).await;
    }

    async fn dead_jobs(&self, n: usize) {
        let dead = |id: &str| {
            let dead = json!({"topic": "late", "id": format!("{id}-{n}"), "url": format!("{}/ok", self.url)});
            with(with(dead, "state", "dead".into()), "reason", "exhausted".into())
        };
        let lines = ["one", "two", "three", "four"].map(|id| dead(id).to_string()).join("\n");
        let url = format!("{}/v1/import", self.api(n));
        self.recorded.send_lines(&url, &lines).await;
        let fails = json!({"topic": "late", "id": format!("fails-{n}"), "url": format!("{}/fails", self.url),
            "retry": {"delays": ["10ms"]}, "on_dead": format!("{}/notice", self.url)});
        self.post(n, "jobs", &fails).await;
        self.call(n, Method::GET, "topics/late/dead?include=request", None).await;
        self.call(n, Method::GET, &format!("jobs/late/fails-{n}/attempts"), None).await;
        self.post(n, &format!("jobs/late/one-{n}/revive"), &Value::Null).await;
        self.call(n, Method::DELETE, &format!("topics/late/dead/two-{n}"), None).await;
        let begun = self.post(n, "topics/late/dead/revive", &json!({"rate": 100_000})).await;
        let id = begun.and_then(|answer| Some(answer["id"].as_str()?.to_owned()));
        self.call(n, Method::GET, "bulk", None).await;
        if let Some(id) = id {
            self.call(n, Method::GET, &format!("bulk/{id}"), None).await;
            if n % 3 == 2 {
                self.call(n, Method::DELETE, &format!("bulk/{id}"), None).await;
            }
        }
        if n % 3 == 1 {
            self.call(n, Method::DELETE, "topics/late/dead", None).await;
        }
    }

    /// Begins bulk operations of each kind, which have jobs to change, and reads them. Stops them in every third round.
    async fn many_jobs(&self, n: usize) {
        let tag = format!("round-{n}");
        let job = |id: &str| json!({"topic": "aside", "id": format!("many-{id}-{n}"), "url": format!("{}/ok", self.url), "tags": [tag]});
        let far = |id: &str| with(job(id), "delay", "1h".into());
        self.post(n, "jobs/batch", &json!([far("run"), far("moved"), far("gone-1"), far("gone-2")])).await;
        let dead = |id: &str| with(with(job(id), "state", "dead".into()), "reason", "exhausted".into());
        let lines = [dead("dead"), dead("purged")].map(|line| line.to_string()).join("\n");
        self.recorded.send_lines(&format!("{}/v1/import", self.api(n)), &lines).await;
        let mut ids = Vec::new();
        for (action, id, fields) in [
            ("run", "run", json!({"rate": 100_000})),
            ("reschedule", "moved", json!({"delay": "30ms"})),
            ("revive", "dead", json!({"rate": 100_000})),
            ("purge", "purged", json!({})),
            ("cancel", "gone", json!({})),
            ("cancel", "gone", json!({"dry_run": true})),
        ] {
            let filter = json!({"tag": tag, "id_prefix": format!("many-{id}")});
            let begun = self.post(n, &format!("jobs/{action}"), &with(fields, "filter", filter)).await;
            ids.extend(begun.and_then(|answer| Some(answer["id"].as_str()?.to_owned())));
        }
        self.call(n, Method::GET, "bulk", None).await;
        for id in ids {
            self.call(n, Method::GET, &format!("bulk/{id}"), None).await;
            if n % 3 == 2 {
                self.call(n, Method::DELETE, &format!("bulk/{id}"), None).await;
            }
        }
    }

    async fn pull_jobs(&self, n: usize) {
        let job = |id: &str| json!({"topic": "hand", "id": format!("{id}-{n}")});
        self.post(n, "jobs/batch", &json!([job("a"), job("b"), job("c"), job("d")])).await;
        let ask = json!({"max": 10, "wait": "50ms", "ttr": "500ms"});
        let Some(reserved) = self.post(n, "topics/hand/reserve", &ask).await else { return };
        let receipts =
            reserved["jobs"].as_array().into_iter().flatten().filter_map(|job| job["receipt"].as_str());
        let receipts: Vec<_> = receipts.collect();
        for (receipt, action) in receipts.iter().zip(["renew", "retry", "bury", "release"]) {
            self.post(n, &format!("receipts/{receipt}/{action}"), &Value::Null).await;
        }
        self.post(n, "receipts/finish", &json!({"receipts": receipts})).await;
    }

    async fn topics(&self, n: usize) {
        self.call(n, Method::PUT, "topics/aside", Some(&json!({"timeout": "2s", "metrics": true}))).await;
        self.post(n, "topics/aside/pause", &Value::Null).await;
        self.post(n, "topics/aside/resume", &Value::Null).await;
        self.post(n, "destinations/aside.example/pause", &Value::Null).await;
        self.post(n, "destinations/aside.example/resume", &Value::Null).await;
        self.call(n, Method::PUT, "topics/short", Some(&json!({"timeout": "2s"}))).await;
        self.call(n, Method::DELETE, "topics/short", None).await;
    }

    /// Sets, pauses, resumes, runs and reads a schedule that ends after 3 seconds; deletes that of three rounds before.
    async fn schedules(&self, n: usize) {
        let until = ringback_testkit::now() + Duration::from_secs(3);
        let job = json!({"topic": "aside", "url": format!("{}/ok", self.url)});
        let put = json!({"every": "1s", "anchor": "2026-01-01T00:00:00Z", "until": until.to_string(),
            "overlap": "skip", "job": job});
        let path = format!("schedules/tick-{n}");
        self.call(n, Method::PUT, &path, Some(&put)).await;
        self.post(n, &format!("{path}/pause"), &Value::Null).await;
        self.post(n, &format!("{path}/resume"), &Value::Null).await;
        self.post(n, &format!("{path}/run"), &Value::Null).await;
        for read in ["schedules", "export/schedules", &format!("{path}/next")] {
            self.call(n, Method::GET, read, None).await;
        }
        if let Some(former) = n.checked_sub(3) {
            self.call(n, Method::DELETE, &format!("schedules/tick-{former}"), None).await;
        }
    }

    async fn reads(&self) {
        for path in [
            "jobs",
            "topics",
            "topics/aside",
            "destinations",
            "forecast",
            "export",
            "export/topics",
            "stats",
            "check",
            "audit-log",
            "jobs?state=ready",
        ] {
            self.call(0, Method::GET, path, None).await;
        }
        self.call(1, Method::POST, "check/repair", None).await;
        for admin in &self.admins {
            self.recorded.other(Method::GET, &format!("{admin}/metrics"), None).await;
        }
        let events = format!("{}/v1/events", self.api(1));
        timeout(LISTEN, self.recorded.other(Method::GET, &events, None)).await.ok();
    }

    async fn flush_functions(&self) {
        let Some(redis) = &self.redis else { return };
        let mut client = redis.get_multiplexed_async_connection().await.expect("the server runs");
        redis::cmd("FUNCTION").arg("FLUSH").query_async::<()>(&mut client).await.expect("FUNCTION FLUSH");
    }

    fn api(&self, n: usize) -> &str {
        &self.apis[n % self.apis.len()]
    }

    async fn post(&self, n: usize, path: &str, body: &Value) -> Option<Value> {
        self.call(n, Method::POST, path, Some(body).filter(|body| !body.is_null())).await
    }

    /// Makes a call and returns its JSON; `None` if the call fails, because its process is killed now and then.
    async fn call(&self, n: usize, method: Method, path: &str, body: Option<&Value>) -> Option<Value> {
        let url = format!("{}/v1/{path}", self.api(n));
        let (_, text) = self.recorded.other(method, &url, body).await?;
        serde_json::from_str(&text).ok()
    }
}

fn with(mut value: Value, field: &str, to: Value) -> Value {
    value[field] = to;
    value
}
