//! Rolling restarts under load: processes end and start again, one after the other, while jobs are submitted,
//! delivered, consumed and cancelled. `RINGBACK_TEST_OTHER_BUILD` is a directory with the binaries of another build;
//! each process then changes its build at each restart, so that both run side by side.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use reqwest::StatusCode;
use ringback_testkit::{Process, Role, http_client, variable};
use tokio::time::sleep;

use super::accepted_count::AcceptedCount;
use crate::prelude::*;

/// How many processes are restarted, unless `RINGBACK_TEST_RESTARTS` is set.
const RESTARTS: usize = 36;
/// How many jobs are submitted between two restarts, at least.
const JOBS_BETWEEN: usize = 20;
/// Every fifth job of a caller is a pull job.
const PULL_EVERY: usize = 5;
/// Every seventh job of a caller is cancelled before it is due.
const CANCEL_EVERY: usize = 7;
const PULL_TOPIC: &str = "consumed";

#[tokio::test]
async fn rolling_restarts_under_load_lose_nothing_and_answer_no_5xx() {
    let two = [Role::Api, Role::Carrier, Role::Notifier]
        .into_iter()
        .fold(Stack::options(), |options, role| options.count(role, 2));
    let counts = roll(two, restarts()).await;
    assert_eq!(counts.delivered_twice, 0, "a process that is asked to end finishes what it has begun");
}

#[tokio::test]
async fn an_update_behind_a_balancer_that_looks_each_second_refuses_no_submit() {
    let two = [Role::Api, Role::Notifier]
        .into_iter()
        .fold(Stack::options(), |options, role| options.count(role, 2));
    // A terminated API serves for longer than the balancer needs to see that it is not ready.
    let two = two.role_env(Role::Api, "RINGBACK_DRAIN_DELAY", "2500ms");
    let (mut stack, sink) = (two.start().await, Sink::counting().await);
    let targets: Vec<Target> = stack.apis.iter().map(Target::of).collect();
    let (is_over, turn) = (AtomicBool::new(false), AtomicUsize::new(0));
    let looking = async {
        while !is_over.load(Ordering::Relaxed) {
            for target in &targets {
                target.look().await;
            }
            sleep(Duration::from_secs(1)).await;
        }
    };
    let submitting = async |caller: usize| {
        let (client, mut ids) = (http_client(), Vec::new());
        while !is_over.load(Ordering::Relaxed) {
            let ready = targets.iter().filter(|target| target.is_ready.load(Ordering::Relaxed));
            let ready: Vec<_> = ready.collect();
            let target = ready[turn.fetch_add(1, Ordering::Relaxed) % ready.len()];
            let id = format!("{caller}-{}", ids.len());
            let request =
                client.post(format!("{}/v1/jobs", target.api)).header("content-type", "application/json");
            let answer = request.body(job(&sink, &id).to_string()).send().await;
            let answer = answer.unwrap_or_else(|error| panic!("{id} was refused: {error:?}"));
            assert_eq!(answer.status(), 201, "{id}");
            ids.push(id);
            sleep(Duration::from_millis(10)).await;
        }
        ids
    };
    let updating = async {
        for (n, target) in targets.iter().enumerate() {
            let (api, notifier) = (&mut stack.apis[n], &mut stack.notifiers[n]);
            for process in [api, notifier] {
                process.term();
                assert_eq!(process.wait_exit(SOON).await.code(), Some(0), "{}", process.log());
                process.restart();
                process.ready(SOON).await;
            }
            let is_back =
                async || target.is_ready.load(Ordering::Relaxed).then_some(()).ok_or("not seen yet");
            eventually(SOON, "the balancer has seen it", is_back).await;
        }
        is_over.store(true, Ordering::Relaxed);
    };
    let ((), (), one, other) = tokio::join!(looking, updating, submitting(1), submitting(2));
    sink.wait_for_jobs(&[one, other].concat(), 1, Duration::from_secs(60)).await;
    let twice: Vec<_> = sink.counts().into_iter().filter(|(_, count)| *count > 1).collect();
    assert_eq!(twice, [], "delivered twice");
}

/// An API, as a balancer knows it.
struct Target {
    api: String,
    readiness: String,
    is_ready: AtomicBool,
}

impl Target {
    fn of(process: &Process) -> Self {
        let readiness = format!("http://{}/readyz", process.admin());
        Self { api: api_of(process), readiness, is_ready: AtomicBool::new(true) }
    }

    async fn look(&self) {
        let answer = http_client().get(&self.readiness).send().await;
        self.is_ready.store(answer.is_ok_and(|answer| answer.status() == 200), Ordering::Relaxed);
    }
}

#[tokio::test]
async fn restarts_of_all_roles_in_one_process_lose_nothing_either() {
    let counts = roll(StackOptions::embedded(), restarts() / 6).await;
    assert_eq!(counts.delivered_twice, 0, "a process that is asked to end finishes what it has begun");
}

/// What clients and receivers have seen.
struct Counts {
    delivered_twice: usize,
}

/// Restarts processes under load, and asserts that each job ended as it should and that no answer was a 5xx.
async fn roll(options: StackOptions, restarts: usize) -> Counts {
    let (mut stack, sink) = (options.start().await, Sink::counting().await);
    let apis: Vec<String> = stack.apis.iter().chain(&stack.ups).map(api_of).collect();
    let load = Load {
        balancer: Balancer { apis, next: AtomicUsize::new(0) },
        sink: &sink,
        submitted: AcceptedCount::default(),
        is_over: AtomicBool::new(false),
    };
    let restarting = async {
        for n in 0..restarts {
            let process = pick(&mut stack, n);
            process.term();
            let status = process.wait_exit(SOON).await;
            assert_eq!(status.code(), Some(0), "{}", process.log());
            process.use_binaries_of(other_build().filter(|_| n / 6 % 2 == 0));
            process.restart();
            process.ready(SOON).await;
            load.submitted.more(JOBS_BETWEEN).await;
        }
        load.is_over.store(true, Ordering::Relaxed);
    };
    let callers = async { tokio::join!(load.submit(1), load.submit(2), load.submit(3), load.submit(4)) };
    let ((), (a, b, c, d), consumed) = tokio::join!(restarting, callers, load.consume());
    let submitted = [a, b, c, d].into_iter().fold(Submitted::default(), Submitted::and);

    sink.wait_for_jobs(&submitted.pushed, 1, Duration::from_secs(60)).await;
    let ended = (submitted.pushed.len() + submitted.pulled.len(), submitted.cancelled.len());
    let has_ended =
        |stats: &Value| stats["states"]["done"] == ended.0 && stats["states"]["cancelled"] == ended.1;
    stack.wait_get("/v1/stats", Duration::from_secs(60), has_ended).await;
    let states = &stack.stats().await["states"];
    assert_eq!(states["dead"], 0, "nothing is dead: {states}");
    let (counts, missing) = (sink.counts(), submitted.pulled.iter().find(|id| !consumed.contains(id)));
    assert_eq!(missing, None, "every pull job was consumed");
    assert!(submitted.cancelled.iter().all(|id| !counts.contains_key(id)), "no cancelled job was delivered");
    Counts { delivered_twice: counts.values().filter(|count| **count > 1).count() }
}

/// The process of turn `n`: an API, a carrier and a notifier in turn, or the only `ringback up`.
fn pick(stack: &mut Stack, n: usize) -> &mut Process {
    if let Some(up) = stack.ups.first_mut() {
        return up;
    }
    let groups = [&mut stack.apis, &mut stack.carriers, &mut stack.notifiers];
    let group = groups.into_iter().nth(n % 3).expect("three groups");
    let turn = n / 3 % group.len();
    &mut group[turn]
}

fn api_of(process: &Process) -> String {
    format!("http://{}", process.setting("RINGBACK_API_LISTEN").expect("an api"))
}

/// Jobs by how they should end.
#[derive(Default)]
struct Submitted {
    pushed: Vec<String>,
    pulled: Vec<String>,
    cancelled: Vec<String>,
}

impl Submitted {
    fn and(self, other: Self) -> Self {
        Self {
            pushed: [self.pushed, other.pushed].concat(),
            pulled: [self.pulled, other.pulled].concat(),
            cancelled: [self.cancelled, other.cancelled].concat(),
        }
    }
}

/// Calls the APIs in turn. One whose listener is closed is left out, as a load balancer does.
struct Balancer {
    apis: Vec<String>,
    next: AtomicUsize,
}

impl Balancer {
    /// Posts to an API and returns the answer. Panics for a 5xx. A request whose connection breaks is repeated, which
    /// is safe for all routes that are called here.
    async fn post(&self, client: &reqwest::Client, path: &str, body: &Value) -> (StatusCode, Value) {
        self.call(path, |url| {
            client.post(url).header("content-type", "application/json").body(body.to_string())
        })
        .await
    }

    async fn call(
        &self,
        path: &str,
        request: impl Fn(String) -> reqwest::RequestBuilder,
    ) -> (StatusCode, Value) {
        let mut refused = 0;
        loop {
            let turn = self.next.fetch_add(1, Ordering::Relaxed) % self.apis.len();
            let sent = request(format!("{}{path}", self.apis[turn])).send().await;
            let answer = match sent {
                Ok(answer) => (answer.status(), answer.text().await),
                Err(error) => {
                    refused += 1;
                    assert!(refused < 2_000, "no api takes {path}: {error:?}");
                    sleep(Duration::from_millis(10)).await;
                    continue;
                }
            };
            let (status, Ok(text)) = answer else { continue };
            // Another build may not wait for its store before it serves.
            if status == 503 && other_build().is_some() {
                sleep(Duration::from_millis(10)).await;
                continue;
            }
            assert!(!status.is_server_error(), "{path} is answered {status}: {text}");
            return (status, serde_json::from_str(&text).unwrap_or(Value::Null));
        }
    }
}

struct Load<'a> {
    balancer: Balancer,
    sink: &'a Sink,
    submitted: AcceptedCount,
    is_over: AtomicBool,
}

impl Load<'_> {
    /// Submits jobs of all kinds until the load is over, and cancels some. Returns the ids.
    async fn submit(&self, caller: usize) -> Submitted {
        let (client, mut submitted, mut n) = (http_client(), Submitted::default(), 0);
        while !self.is_over.load(Ordering::Relaxed) {
            n += 1;
            let id = format!("{caller}-{n}");
            let is_cancelled = n % CANCEL_EVERY == 0;
            let delay = if is_cancelled { "1h".to_owned() } else { format!("{}ms", n * 37 % 400) };
            let new = if n % PULL_EVERY == 0 && !is_cancelled {
                json!({"topic": PULL_TOPIC, "id": id, "body": {}})
            } else {
                with(job(self.sink, &id), "delay", delay)
            };
            let (status, answer) = self.balancer.post(&client, "/v1/jobs", &new).await;
            assert!(status == 201 || status == 200, "{status}: {answer}");
            let ids = if is_cancelled {
                self.cancel(&client, &id).await;
                &mut submitted.cancelled
            } else if n % PULL_EVERY == 0 {
                &mut submitted.pulled
            } else {
                &mut submitted.pushed
            };
            ids.push(id);
            self.submitted.add();
            sleep(Duration::from_millis(5)).await;
        }
        submitted
    }

    async fn cancel(&self, client: &reqwest::Client, id: &str) {
        let path = format!("/v1/jobs/{TOPIC}/{id}");
        let (status, answer) = self.balancer.call(&path, |url| client.delete(url)).await;
        assert_eq!((status.as_u16(), &answer["state"]), (200, &json!("cancelled")), "{answer}");
    }

    /// Reserves and finishes pull jobs until the load is over and none is left. Returns the ids.
    async fn consume(&self) -> Vec<String> {
        let (client, mut consumed) = (http_client(), Vec::new());
        let path = format!("/v1/topics/{PULL_TOPIC}/reserve");
        loop {
            // A reserve whose answer gets lost keeps its jobs until their leases run out.
            let ask = json!({"max": 10, "ttr": "2s", "wait": "1s"});
            let was_over = self.is_over.load(Ordering::Relaxed);
            let (status, answer) = self.balancer.post(&client, &path, &ask).await;
            assert_eq!(status, 200, "{answer}");
            let jobs = answer["jobs"].as_array().cloned().unwrap_or_default();
            if jobs.is_empty() && was_over {
                return consumed;
            }
            for job in jobs {
                let text = |field: &str| job[field].as_str().unwrap_or_default().to_owned();
                let path = format!("/v1/receipts/{}/finish", text("receipt"));
                let (status, answer) = self.balancer.post(&client, &path, &json!({})).await;
                assert_eq!(status, 200, "{answer}");
                consumed.push(text("id"));
            }
        }
    }
}

fn restarts() -> usize {
    variable("RINGBACK_TEST_RESTARTS").unwrap_or(RESTARTS)
}

/// The directory with the binaries of another build, from `RINGBACK_TEST_OTHER_BUILD`.
fn other_build() -> Option<PathBuf> {
    variable("RINGBACK_TEST_OTHER_BUILD")
}
