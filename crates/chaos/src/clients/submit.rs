//! Clients that submit jobs: alone and in batches, with ids and idempotency keys, repeated if the outcome is unknown.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use reqwest::Method;
use ringback_testkit::history::{Digest, Entry, Submit, millis};
use serde_json::Value;
use tokio::time::sleep;

use super::api::CallOutcome;
use super::{Clients, SHORT_POLICY, SUBMITTERS, SubmittedJob, TIMEOUT};

/// How often a submit is repeated while its outcome is unknown.
const REPETITIONS: u64 = 4;
/// The paths of URLs: every third job is delivered without trouble.
const PATHS: [&str; 12] = [
    "/ok", "/ok", "/ok", "/ok", "/flaky", "/flaky", "/flaky", "/slow", "/late", "/gone", "/moved", "/broken",
];

/// A job as it is submitted.
struct Request {
    topic: &'static str,
    id: Option<String>,
    key: Option<String>,
    url: Option<String>,
    body: String,
    number: String,
    at: Option<u64>,
    delay: Option<u64>,
    policy: Option<u32>,
    if_exists: Option<&'static str>,
}

impl Request {
    fn new(clients: &Clients, client: u64, number: u64, rng: &mut StdRng) -> Self {
        let name = format!("{client}-{number}");
        let kind = rng.random_range(0..100);
        let (is_pull, is_keyed, is_replaced) =
            (kind < 20, (20..30).contains(&kind), (30..36).contains(&kind));
        let path = PATHS[rng.random_range(0..PATHS.len())];
        let padding = if rng.random_range(0..20) == 0 { 20_000 } else { rng.random_range(0..200) };
        let now = u64::try_from(ringback_testkit::now().as_millisecond()).expect("it is after 1970");
        let wait = rng.random_range(0..3_000);
        let (at, delay) = match rng.random_range(0..4) {
            0 => (None, None),
            1 => (Some(now + wait), None),
            _ => (None, Some(wait)),
        };
        Self {
            topic: if is_pull { "pull" } else { "push" },
            id: match (is_keyed, is_replaced) {
                (true, _) => None,
                (false, true) => Some(format!("again-{}", rng.random_range(0..20))),
                (false, false) => Some(name.clone()),
            },
            key: (is_keyed || is_replaced).then(|| format!("key-{name}")),
            url: (!is_pull).then(|| format!("{}{path}", clients.receiver)),
            body: format!(r#"{{"n": "{name}", "padding":"{}"}}"#, "p".repeat(padding)),
            number: name,
            at,
            delay,
            policy: (rng.random_range(0..3) == 0).then_some(SHORT_POLICY),
            if_exists: is_replaced.then(|| if rng.random_range(0..2) == 0 { "replace" } else { "postpone" }),
        }
    }

    /// The exact JSON text of the submit.
    fn json(&self) -> String {
        let mut text = format!(r#"{{"topic":"{}","body":{}"#, self.topic, self.body);
        let _ = write!(text, r#","headers":{{"x-n":"{0}"}},"context":{{"k":"c {0}"}}"#, self.number);
        match &self.url {
            Some(url) => write!(text, r#","url":"{url}","timeout":"{TIMEOUT}ms""#),
            None => write!(text, r#","ttr":"700ms""#),
        }
        .expect("a text takes all");
        let at = self.at.map(|at| {
            let at = jiff::Timestamp::from_millisecond(i64::try_from(at).expect("it fits"));
            format!(r#","at":"{}""#, at.expect("it is near"))
        });
        let delay = self.delay.map(|delay| format!(r#","delay":"{delay}ms""#));
        let id = self.id.as_ref().map(|id| format!(r#","id":"{id}""#));
        let if_exists = self.if_exists.map(|what| format!(r#","if_exists":"{what}""#));
        let retry = self.policy.map(|_| r#","retry":{"delays":["150ms","50ms"],"jitter":0}"#.to_owned());
        text.extend([at, delay, id, if_exists, retry].into_iter().flatten());
        text.push('}');
        text
    }

    /// Writes the request of the submit. Returns the number of the call.
    fn write(&self, clients: &Clients) -> u64 {
        let (history, n) = (&clients.history, clients.history.next());
        let context = format!("c {}", self.number);
        history.write(&Entry::Submit(Submit {
            t: history.t(),
            n,
            job: &format!("{}/{}", self.topic, self.id.as_deref().unwrap_or_default()),
            url: self.url.as_deref(),
            body: Digest::of(self.body.as_bytes()),
            headers: Digest::of_headers([("x-n", self.number.as_str()), ("ringback-context-k", &context)]),
            at: self.at,
            delay: self.delay,
            policy: self.policy,
            timeout: None,
            key: self.key.as_deref(),
            replace: self.if_exists.is_some(),
            store: 0,
        }));
        n
    }

    fn known(&self, answer: &Value) -> Option<SubmittedJob> {
        let id = self.id.clone().or_else(|| answer["id"].as_str().map(str::to_owned))?;
        Some(SubmittedJob { topic: self.topic, id, due: millis(&answer["due_at"]) })
    }
}

pub(super) async fn run(clients: Arc<Clients>, client: u64, mut rng: StdRng) {
    let pause = Duration::from_millis(1_000 * SUBMITTERS / clients.rate);
    let mut number = 0;
    while !clients.is_over() {
        let count = if rng.random_range(0..25) == 0 { rng.random_range(2..12) } else { 1 };
        let requests: Vec<_> = (0..count)
            .map(|_| {
                number += 1;
                Request::new(&clients, client, number, &mut rng)
            })
            .collect();
        if let [request] = requests.as_slice() {
            one(&clients, request, &mut rng).await;
        } else {
            // A batch has no idempotency keys.
            batch(&clients, requests.iter().filter(|request| request.key.is_none()).collect()).await;
        }
        let jitter = rng.random_range(0.5..1.5);
        sleep(pause.mul_f64(jitter * f64::from(count))).await;
    }
}

/// Submits until the outcome is known, and after one in 40 known outcomes again, at most four times in all. Adds the job
/// to the clients' known jobs once it is accepted.
async fn one(clients: &Clients, request: &Request, rng: &mut StdRng) {
    let mut was_known = false;
    for repetition in 0..REPETITIONS {
        let n = request.write(clients);
        let limit = Duration::from_secs(3);
        let sent = clients.api.call_with(
            Method::POST,
            "/v1/jobs",
            Some(request.json()),
            request.key.as_deref(),
            limit,
        );
        let outcome = sent.await;
        outcome.write(&clients.history, n);
        if let Some(known) = request.known(&outcome.json()).filter(|_| !was_known) {
            was_known = true;
            clients.add(known);
        }
        if !outcome.is_unknown() && rng.random_range(0..40) != 0 {
            return;
        }
        sleep(Duration::from_millis(50 << repetition)).await;
    }
}

async fn batch(clients: &Clients, requests: Vec<&Request>) {
    let numbers: Vec<_> = requests.iter().map(|request| request.write(clients)).collect();
    let jobs: Vec<_> = requests.iter().map(|request| request.json()).collect();
    let body = format!("[{}]", jobs.join(","));
    let outcome = clients.api.call(Method::POST, "/v1/jobs/batch", Some(body)).await;
    let answer = outcome.json();
    for (place, (n, request)) in numbers.into_iter().zip(&requests).enumerate() {
        let result = &answer["results"][place];
        let status = result["status"].as_u64().and_then(|status| u16::try_from(status).ok());
        match outcome {
            CallOutcome::Refused(_) => outcome.write(&clients.history, n),
            CallOutcome::Ok(..) | CallOutcome::Unknown => {
                clients.history.write_outcome(n, status, &result["job"]);
            }
        }
        if let Some(known) = request.known(&result["job"]) {
            clients.add(known);
        }
    }
}
