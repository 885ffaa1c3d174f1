//! Consumers that pull: how long after a lease ran out its job is with another consumer, what many who wait on empty
//! topics cost, how soon a submit reaches one of them, and how many jobs a few consumers reserve and finish.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use jiff::Timestamp;
use reqwest::Client;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::figure::{Figure, report};
use super::latencies::Latencies;
use super::setup::Setup;
use super::spread::Spread;
use super::usage::{cpu_seconds, resident_mib};
use crate::{Role, Stack, eventually, http_client, now};

const NAME: &str = "pull";
/// The shortest tier there is: it stands between the deadline and the next consumer.
const TIER_MS: u64 = 10;
/// How long the consumers that are never heard of again have their jobs.
const TTR: &str = "200ms";
/// Who waits is connected within this.
const CONNECTED: Duration = Duration::from_secs(60);
/// The longest wait there is, and something on top for the answer.
const WAIT: Duration = Duration::from_secs(60);
const TOPICS: usize = 100;
const CONSUMERS: usize = 8;

pub(super) async fn run(setup: &Setup) {
    let stack = setup.stack(setup.profile()).count(Role::Notifier, 0).start().await;
    lapses(setup, &stack).await;
    waiters(setup, &stack).await;
    let mut rates = Vec::new();
    for round in 0..setup.rounds() {
        rates.push(drain(setup, &stack, round).await);
    }
    let with = json!({ "consumers": CONSUMERS, "max": 100, "appendfsync": setup.profile().name() });
    let value = Spread::of(rates);
    Figure { scenario: NAME, name: "reserved-and-finished", unit: "jobs/s", value, yardstick: None, with }
        .report();
}

/// Asks for jobs of a topic.
async fn reserve(client: &Client, url: &str, ask: &Value) -> Vec<Value> {
    let request = client.post(url).header("content-type", "application/json").body(ask.to_string());
    let answer = request.timeout(WAIT * 2).send().await.expect("the API answers");
    assert_eq!(answer.status(), 200);
    let answer: Value = serde_json::from_slice(&answer.bytes().await.expect("a body")).expect("JSON");
    answer["jobs"].as_array().expect("jobs").clone()
}

fn url(stack: &Stack, topic: &str) -> String {
    stack.url(&format!("/v1/topics/{topic}/reserve"))
}

/// One consumer is given a job and never heard of again, while another one waits: from the deadline to the answer
/// that the other one gets.
async fn lapses(setup: &Setup, stack: &Stack) {
    let (client, url) = (http_client(), url(stack, "lapses"));
    let (mut latencies, rounds) = (Latencies::new(), setup.size.pick(100, 5));
    for round in 0..rounds {
        let retry = json!({ "delays": [format!("{TIER_MS}ms")], "jitter": 0 });
        stack.accept(&json!({ "topic": "lapses", "id": round.to_string(), "retry": retry })).await;
        let first = reserve(&client, &url, &json!({ "ttr": TTR })).await;
        let deadline: Timestamp =
            first[0]["deadline"].as_str().and_then(|text| text.parse().ok()).expect("a time");
        let second = reserve(&client, &url, &json!({ "wait": "20s" })).await;
        let late = now().duration_since(deadline);
        assert_eq!((&second[0]["id"], &second[0]["attempt"]), (&first[0]["id"], &json!(2)));
        latencies.record(late.try_into().expect("never before the deadline"));
        finish(stack, &client, &second).await;
    }
    let with = json!({ "rounds": rounds, "tier_ms": TIER_MS, "max_ms": latencies.millis(1.0) });
    report(NAME, "after-the-deadline-p50", latencies.millis(0.5), "ms", &with);
    report(NAME, "after-the-deadline-p99", latencies.millis(0.99), "ms", &with);
}

async fn finish(stack: &Stack, client: &Client, jobs: &[Value]) {
    let receipts: Vec<_> = jobs.iter().map(|job| job["receipt"].clone()).collect();
    let body = json!({ "receipts": receipts }).to_string();
    let request = client.post(stack.url("/v1/receipts/finish")).header("content-type", "application/json");
    let answer = request.body(body).send().await.expect("the API answers");
    let answer: Value = serde_json::from_slice(&answer.bytes().await.expect("a body")).expect("JSON");
    let results = answer["results"].as_array().expect("results");
    assert!(results.iter().all(|result| result["status"] == 200), "{answer}");
}

/// Many who wait on empty topics: what they cost, and how soon a submit reaches one of them.
async fn waiters(setup: &Setup, stack: &Stack) {
    let (count, submits) = (setup.size.pick(10_000, 200), setup.size.pick(200, 10));
    let client = http_client();
    let api = stack.apis[0].pid();
    let before = resident_mib(api);
    let mut waiting = JoinSet::new();
    let began = Instant::now();
    for n in 0..count {
        let (client, url) = (client.clone(), url(stack, &format!("waiters-{}", n % TOPICS)));
        waiting.spawn(async move {
            let jobs = reserve(&client, &url, &json!({ "wait": "60s" })).await;
            (now(), jobs)
        });
    }
    connected(api, count).await;
    let (redis, connect_seconds) = (stack.redis(), began.elapsed().as_secs_f64());

    sleep(setup.size.pick(Duration::from_secs(3), Duration::from_millis(200))).await;
    let calls = redis.watch_calls().await;
    let (api_before, redis_before, started) = (cpu_seconds(api), cpu_seconds(redis.pid()), Instant::now());
    sleep(setup.size.pick(Duration::from_secs(10), Duration::from_secs(1))).await;
    let seconds = started.elapsed().as_secs_f64();
    let share = |pid, before| (cpu_seconds(pid) - before) / seconds * 100.0;
    let (api_cpu, redis_cpu) = (share(api, api_before), share(redis.pid(), redis_before));
    let with = json!({ "waiters": count, "topics": TOPICS, "connected_in_s": connect_seconds,
        "calls_per_second": calls.total() as f64 / seconds });
    report(NAME, "waiting-api-cpu", api_cpu, "% of core", &with);
    report(NAME, "waiting-redis-cpu", redis_cpu, "% of core", &with);
    let each = (resident_mib(api) - before) * 1024.0 / count as f64;
    report(NAME, "waiting-api-memory", each, "KiB each", &with);

    let mut latencies = Latencies::new();
    for n in 0..submits {
        let sent = now();
        stack.accept(&json!({ "topic": format!("waiters-{}", n % TOPICS), "id": n.to_string() })).await;
        let woken = timeout(WAIT, waiting.join_next()).await.expect("in time").expect("one who waits");
        let (at, jobs) = woken.expect("an answer");
        assert_eq!((jobs.len(), &jobs[0]["id"]), (1, &json!(n.to_string())), "one submit wakes one");
        latencies.record(at.duration_since(sent).try_into().expect("not before it was sent"));
    }
    let with = json!({ "waiters": count, "submits": submits, "max_ms": latencies.millis(1.0) });
    report(NAME, "submit-to-waiter-p50", latencies.millis(0.5), "ms", &with);
    report(NAME, "submit-to-waiter-p99", latencies.millis(0.99), "ms", &with);
}

/// Until a process has so many connections.
async fn connected(pid: u32, count: usize) {
    eventually(CONNECTED, &format!("{count} wait"), async || {
        let sockets = std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
        if sockets >= count { Ok(()) } else { Err(sockets) }
    })
    .await;
}

/// A backlog that a few consumers reserve and finish, a hundred at a time: jobs per second.
async fn drain(setup: &Setup, stack: &Stack, round: usize) -> f64 {
    let count = setup.size.pick(50_000, 1_000);
    let topic = format!("drain-{round}");
    let body = json!({ "status": "PAID", "note": "x".repeat(190) });
    for chunk in 0..count / 1000 {
        let jobs: Vec<_> = (0..1000)
            .map(|n| json!({ "topic": topic, "id": format!("{}", chunk * 1000 + n), "body": body }))
            .collect();
        assert_eq!(stack.batch(&jobs).await.1["accepted"], 1000);
    }
    let (client, url, started) = (http_client(), url(stack, &topic), Instant::now());
    let mut consumers: FuturesUnordered<_> = (0..CONSUMERS)
        .map(|_| async {
            let mut mine = 0;
            loop {
                let jobs = reserve(&client, &url, &json!({ "max": 100 })).await;
                if jobs.is_empty() {
                    return mine;
                }
                finish(stack, &client, &jobs).await;
                mine += jobs.len();
            }
        })
        .collect();
    let mut all = 0;
    while let Some(mine) = consumers.next().await {
        all += mine;
    }
    assert_eq!(all, count, "each job is reserved and finished once");
    count as f64 / started.elapsed().as_secs_f64()
}
