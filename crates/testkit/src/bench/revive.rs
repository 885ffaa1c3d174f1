//! Very many dead jobs of one topic revived at a given rate, while other topics go on: how well the rate is kept,
//! how late the others are, and the longest that Redis is busy at a time.

use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use jiff::{SignedDuration, Timestamp};
use ringback_core::job::{History, ImportJob};
use ringback_store::Store;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::figure::{Figure, report};
use super::herd::probe::Probe;
use super::job::{job, parse};
use super::lateness::{ahead, batches};
use super::receiver::{Channel, Receiver};
use super::setup::Setup;
use crate::{Role, Stack, now};

const NAME: &str = "revive";
/// The topic of the dead jobs.
const TOPIC: &str = "pay.notify";
/// Of the others: how many, and their jobs per second in all.
const TOPICS: usize = 10;
const RATE: usize = 200;
/// Jobs in a call.
const PER_CALL: usize = 500;

/// How many are dead, and how many of them are revived a second.
#[derive(Clone, Copy)]
struct Shape {
    dead: usize,
    rate: usize,
}

impl Shape {
    /// For how long the others go on: as long as all are being revived, but for a second before the end.
    fn others(self) -> usize {
        RATE * (self.dead / self.rate).saturating_sub(1).max(1)
    }
}

pub(super) async fn run(setup: &Setup) {
    let shape = setup.size.pick(Shape { dead: 100_000, rate: 2_000 }, Shape { dead: 2_000, rate: 500 });
    let receiver = Receiver::start().await;
    let stack = setup.stack(setup.profile()).count(Role::Carrier, 2).start().await;
    let others = shape.others();
    let first = 2 * others;
    bury(&setup.open(stack.redis()).await, &receiver, first..first + shape.dead).await;
    let calm = calm(&stack, &receiver, others).await;

    receiver.expect(others..first + shape.dead);
    let start = ahead(Duration::from_secs(3));
    submit_others(&stack, &receiver, others..first, start).await;
    let probe = Probe::start(stack.redis()).await;
    sleep(Duration::try_from(start.duration_since(now())).unwrap_or_default()).await;
    let done = revive(&stack, shape).await;
    receiver.wait_for(others + shape.dead, Duration::from_secs(120)).await;
    let seen = probe.end(stack.redis()).await;
    assert_eq!(done["revived"], shape.dead, "each dead job is revived once: {done}");
    assert_eq!(receiver.board().duplicates(), 0, "no job is handed over twice");
    tell(&receiver, shape, seconds(&done), calm);
    let with = json!({ "dead": shape.dead, "longest": seen.command });
    report(NAME, "longest-command", seen.longest_ms, "ms", &with);
}

fn tell(receiver: &Receiver, shape: Shape, seconds: f64, calm: f64) {
    let with = json!({ "dead": shape.dead, "seconds": seconds });
    let (value, yardstick) =
        ((shape.dead as f64 / seconds).into(), Some(("asked for", (shape.rate as f64).into())));
    Figure { scenario: NAME, name: "revived", unit: "jobs/s", value, yardstick, with }.report();
    let value = receiver.board().lateness(Channel::Beside).millis(0.99).into();
    let with = json!({ "dead": shape.dead, "topics": TOPICS, "rate": RATE, "jobs": shape.others() });
    let yardstick = Some(("before the revival", calm.into()));
    Figure { scenario: NAME, name: "others-p99", unit: "ms", value, yardstick, with }.report();
}

/// Puts dead jobs in, past the API.
async fn bury(store: &Store, receiver: &Receiver, numbers: Range<usize>) {
    let history =
        Some(History { dead: Some("gone".to_owned()), attempts: 1, failures: 1, ..History::default() });
    let url = receiver.url(Channel::Main);
    let mut shards: Vec<Vec<ImportJob>> = store.shards().map(|_| Vec::new()).collect();
    for number in numbers {
        let job = parse(&job(number, &url, &json!({ "topic": TOPIC })));
        let shard = usize::from(store.shard_of(&job.key).number());
        shards[shard].push(ImportJob { job, history: history.clone() });
    }
    for (shard, jobs) in store.shards().zip(&shards) {
        for call in jobs.chunks(PER_CALL) {
            store.import(shard, call).await.expect("the store accepts");
        }
    }
}

/// The p99 of the others while nothing is revived.
async fn calm(stack: &Stack, receiver: &Receiver, others: usize) -> f64 {
    receiver.expect(0..others);
    submit_others(stack, receiver, 0..others, ahead(Duration::from_secs(3))).await;
    receiver.wait_for(others, Duration::from_secs(60 + (others / RATE) as u64)).await;
    receiver.board().lateness(Channel::Beside).millis(0.99)
}

/// Jobs of other topics, due evenly from a moment on.
async fn submit_others(stack: &Stack, receiver: &Receiver, numbers: Range<usize>, start: Timestamp) {
    let url = receiver.url(Channel::Beside);
    let due = |n: usize| start + SignedDuration::from_micros((n * 1_000_000 / RATE) as i64);
    let one = |(n, number): (usize, usize)| {
        job(number, &url, &json!({ "topic": format!("other.{:03}", n % TOPICS), "at": due(n).to_string() }))
    };
    let all: Vec<Value> = numbers.enumerate().map(one).collect();
    batches(stack, &all).await;
}

/// Revives all, and gives what is told at the end.
///
/// # Panics
/// When it takes three times as long as it should.
async fn revive(stack: &Stack, shape: Shape) -> Value {
    let body = Some(("application/json", Bytes::from(json!({ "rate": shape.rate }).to_string())));
    let begun = stack.request(Method::POST, &format!("/v1/topics/{TOPIC}/dead/revive"), body).await;
    let location = begun.header("location").expect("where its progress is").to_owned();
    for _ in 0..30 * (shape.dead / shape.rate + 1) {
        sleep(Duration::from_millis(100)).await;
        let now = stack.request(Method::GET, &location, None).await.json();
        if now["state"] == "done" {
            return now;
        }
    }
    panic!("the revival does not end");
}

/// From its beginning to its end, by the store's clock.
fn seconds(done: &Value) -> f64 {
    let time =
        |name: &str| done[name].as_str().and_then(|text| text.parse::<Timestamp>().ok()).expect("a time");
    time("ended_at").duration_since(time("started_at")).as_secs_f64()
}
