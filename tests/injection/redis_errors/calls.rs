//! Sends the requests whose calls of the store get errors, judges the answers, and makes work for the roles.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use redis::aio::MultiplexedConnection;
use ringback_testkit::recorded::{Recorded, RecordedJob};
use ringback_testkit::{RedisErrors, RedisFault, eventually};
use serde_json::{Value, json};

use super::requests::Request;
use super::table::{ErrorEffect, OF_OTHERS};

/// A body that is stored beside its record.
const LARGE: usize = 100_000;
/// How long it may take until a repeated request succeeds.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// How often a request is prepared and sent until it makes its call.
const TRIES: usize = 3;

pub(crate) struct Client<'a> {
    pub(crate) recorded: &'a Arc<Recorded>,
    pub(crate) api: String,
    pub(crate) url: String,
    /// A receiver whose deliveries are not judged.
    pub(crate) aside: String,
    /// The server itself.
    pub(crate) redis: MultiplexedConnection,
}

impl Client<'_> {
    /// Sends a request whose call gets an error, and repeats it until it succeeds. Returns what is wrong with the
    /// first answer; `None` if it is as `wanted`.
    pub(crate) async fn answered(
        &self,
        proxy: &RedisErrors,
        call: &str,
        (name, fault): (&str, RedisFault),
        wanted: ErrorEffect,
        round: &str,
    ) -> Option<String> {
        let mut tries = 0;
        let (request, status, answer) = loop {
            tries += 1;
            let request = self.request(call, &format!("{call}-{round}-{tries}")).await;
            proxy.arm(call, fault);
            let (status, answer) = self.send(&request).await;
            // A repair counts nothing while jobs move, and another role may be faster.
            let was_made = proxy.left().is_empty();
            let was_of_other =
                OF_OTHERS.contains(&call) && wanted == ErrorEffect::Unavailable && status == 200;
            if was_made && !was_of_other || tries == TRIES {
                break (request, status, answer);
            }
            proxy.disarm();
        };
        let is_unavailable = status == 503 && answer.contains("\"detail\"");
        let is_served = (200..300).contains(&status) || call == "accept_loss" && status == 409;
        let is_right = match wanted {
            ErrorEffect::Unavailable => is_unavailable,
            ErrorEffect::Served => is_served,
            ErrorEffect::Either => is_unavailable || is_served,
            ErrorEffect::Repeated => false,
        };
        let was_made = proxy.left().is_empty();
        proxy.disarm();
        eventually(SOON, &format!("{call} succeeds after {name}"), async || {
            match self.send(&request).await {
                (status @ 200..500, _) => Ok(status),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
        if !was_made {
            return Some(format!("{call} was not made; {status} {answer}"));
        }
        (!is_right).then(|| format!("{call}: {name} is answered {status} {answer}, not {wanted:?}"))
    }

    /// Makes work for carriers and notifiers: submits jobs with a URL, a schedule, and a pull job, which it reserves
    /// until the job is dead because its lease has expired.
    pub(crate) async fn work(&self, round: &str) {
        for n in 0..12 {
            let path = if n % 4 == 0 { "/flaky" } else { "/hook" };
            let job =
                RecordedJob::new("push", &format!("job-{round}-{n}"), Some(format!("{}{path}", self.url)));
            let job = RecordedJob { delay: (n % 2 == 0).then_some(40 + n), timeout: Some(1_000), ..job };
            self.recorded.submit(&self.api, &job).await;
        }
        // Half of it is left when it is compressed.
        let digits = |n: usize| format!("{:016x}", (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let large: String = (1..=LARGE / 16).map(digits).collect();
        let job =
            json!({"topic": "aside", "id": round, "url": format!("{}/hook", self.aside), "body": large});
        self.ok("POST", "jobs", job).await;
        let job = json!({"topic": "lapses", "id": round, "retry": {"preset": "none"}, "body": large});
        self.ok("POST", "jobs", job).await;
        let until = ringback_testkit::now() + Duration::from_secs(3);
        let job = json!({"topic": "aside", "url": format!("{}/hook", self.aside)});
        let schedule = json!({"every": "1s", "until": until.to_string(), "job": job});
        self.ok("PUT", &format!("schedules/tick-{round}"), schedule).await;
        let ask = json!({"max": 100, "ttr": "100ms", "wait": 0});
        let reserve = (Method::POST, format!("{}/v1/topics/lapses/reserve", self.api), Some(ask));
        let look = (Method::GET, format!("{}/v1/jobs/lapses/{round}", self.api), None);
        eventually(SOON, "the lease of a consumer has run out", async || {
            self.send(&reserve).await;
            match self.send(&look).await {
                (200, job) if job.contains("\"state\":\"dead\"") => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    }

    /// Reserves from an empty topic with a wait of four seconds, in which the API checks whether it missed a wake-up.
    pub(crate) async fn wait_in_vain(&self) {
        let ask = json!({"wait": "4s"});
        self.ok("POST", "topics/empty/reserve", ask).await;
    }

    /// Repeats a call until it succeeds. Panics after [`SOON`].
    pub(crate) async fn ok(&self, method: &str, path: &str, body: Value) {
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let request = (method, format!("{}/v1/{path}", self.api), Some(body).filter(|body| !body.is_null()));
        eventually(SOON, path, async || match self.send(&request).await {
            (200..300, _) => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
    }

    pub(crate) async fn send(&self, (method, url, body): &Request) -> (u16, String) {
        let answer = match body {
            Some(Value::String(lines)) => self.recorded.send_lines(url, lines).await,
            body => self.recorded.other(method.clone(), url, body.as_ref()).await,
        };
        answer.unwrap_or((0, "no answer".to_owned()))
    }
}
