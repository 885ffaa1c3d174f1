//! Pull jobs: how long after a lease expires another consumer gets the job, the cost of many consumers that wait on
//! empty topics, the time from a submit to a waiting consumer, and how many jobs a few consumers reserve and finish.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use jiff::Timestamp;
use reqwest::Client;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::figure::{Spread, report};
use crate::latencies::Latencies;
use crate::setup::Setup;
use crate::usage::{cpu_seconds, resident_mib};
use ringback_testkit::{Role, Stack, eventually, http_client, now};

pub(crate) const NAME: &str = "pull";
/// The shortest possible retry delay, which passes between the deadline and the next consumer.
const TIER_MS: u64 = 10;
/// The lease of consumers that never answer.
const TTR: &str = "200ms";
/// All waiting consumers are connected within this.
const CONNECTED: Duration = Duration::from_secs(60);
/// The longest wait that the API allows.
const WAIT: Duration = Duration::from_secs(60);
const TOPICS: usize = 100;
const CONSUMERS: usize = 8;

pub(crate) async fn run(setup: &Setup) {
    let stack = setup.stack(setup.profile()).count(Role::Notifier, 0).start().await;
    expired_leases(setup, &stack).await;
    waiters(setup, &stack).await;
    let mut round = 0;
    let rates = setup.repeat(async || {
        round += 1;
        drain(setup, &stack, round).await
    });
    let with = json!({ "consumers": CONSUMERS, "max": 100, "appendfsync": setup.profile() });
    report(NAME, "reserved-and-finished", Spread::of(rates.await), "jobs/s", &with);
}

/// Reserves jobs with a request that may wait longer than the client of the stack allows.
async fn wait(client: &Client, url: &str, ask: &Value) -> Vec<Value> {
    let request = client.post(url).header("content-type", "application/json").body(ask.to_string());
    let answer = request.timeout(WAIT * 2).send().await.expect("the API answers");
    assert_eq!(answer.status(), 200);
    let answer: Value = serde_json::from_slice(&answer.bytes().await.expect("a body")).expect("JSON");
    answer["jobs"].as_array().expect("jobs").clone()
}

/// Measures how late after its deadline an expired lease of a silent consumer reaches a second one that waits.
async fn expired_leases(setup: &Setup, stack: &Stack) {
    let (mut latencies, rounds) = (Latencies::new(), setup.size.pick(100, 5));
    for round in 0..rounds {
        let retry = json!({ "delays": [format!("{TIER_MS}ms")], "jitter": 0 });
        stack.accept(&json!({ "topic": "expires", "id": round.to_string(), "retry": retry })).await;
        let first = stack.reserve_one("expires", &json!({ "ttr": TTR })).await;
        let deadline: Timestamp =
            first["deadline"].as_str().and_then(|text| text.parse().ok()).expect("a time");
        let second = stack.reserve_one("expires", &json!({ "wait": "20s" })).await;
        let late = now().duration_since(deadline);
        assert_eq!((&second["id"], &second["attempt"]), (&first["id"], &json!(2)));
        latencies.record(late.try_into().expect("never before the deadline"));
        finish(stack, &[second]).await;
    }
    let with = json!({ "rounds": rounds, "tier_ms": TIER_MS, "max_ms": latencies.millis(1.0) });
    report(NAME, "after-the-deadline-p50", latencies.millis(0.5), "ms", &with);
    report(NAME, "after-the-deadline-p99", latencies.millis(0.99), "ms", &with);
}

async fn finish(stack: &Stack, jobs: &[Value]) {
    let receipts: Vec<_> = jobs.iter().map(|job| job["receipt"].clone()).collect();
    let answer = stack.post("/v1/receipts/finish", &json!({ "receipts": receipts })).await.json();
    let results = answer["results"].as_array().expect("results");
    assert!(results.iter().all(|result| result["status"] == 200), "{answer}");
}

/// Measures the cost of many consumers that wait on empty topics, and the time from a submit to one of them.
async fn waiters(setup: &Setup, stack: &Stack) {
    let (count, submits) = (setup.size.pick(10_000, 200), setup.size.pick(200, 10));
    let client = http_client();
    let api = stack.apis[0].pid();
    let before = resident_mib(api);
    let mut waiting = JoinSet::new();
    let began = Instant::now();
    for n in 0..count {
        let (client, url) =
            (client.clone(), stack.url(&format!("/v1/topics/waiters-{}/reserve", n % TOPICS)));
        waiting.spawn(async move {
            let jobs = wait(&client, &url, &json!({ "wait": "60s" })).await;
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

/// Waits until a process has at least `count` open file descriptors: its connections, and a few more.
async fn connected(pid: u32, count: usize) {
    eventually(CONNECTED, &format!("{count} wait"), async || {
        let sockets = std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
        if sockets >= count { Ok(()) } else { Err(sockets) }
    })
    .await;
}

/// Submits a backlog, which [`CONSUMERS`] consumers then reserve and finish, 100 jobs per call. Returns jobs per second.
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
    let started = Instant::now();
    let mut consumers: FuturesUnordered<_> = (0..CONSUMERS)
        .map(|_| async {
            let mut mine = 0;
            loop {
                let jobs = stack.reserve(&topic, &json!({ "max": 100 })).await;
                if jobs.is_empty() {
                    return mine;
                }
                finish(stack, &jobs).await;
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
