//! The bulk revive of very many dead jobs of one topic at a given rate, while other topics go on: the rate reached, the
//! lateness of the other topics, and the longest that one command keeps Redis busy.

use std::ops::Range;
use std::time::Duration;

use jiff::Timestamp;
use ringback_core::job::{History, ImportJob};
use ringback_store::Store;
use ringback_testkit::{Role, Stack, now};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::figure::Figure;
use crate::fill::by_shard;
use crate::job::{job, parse};
use crate::probe::Probe;
use crate::receiver::{Channel, Receiver};
use crate::setup::Setup;
use crate::train::{Neighbours, ahead};

pub(crate) const NAME: &str = "revive";
/// The topic of the dead jobs.
const TOPIC: &str = "pay.notify";
/// Jobs per second of the other topics.
const RATE: usize = 200;
const PER_CALL: usize = 500;

/// The number of dead jobs, and how many of them become due per second.
#[derive(Clone, Copy)]
struct Shape {
    dead: usize,
    rate: usize,
}

impl Shape {
    /// The number of jobs of the other topics: they end about a second before the revive does.
    fn others(self) -> usize {
        RATE * (self.dead / self.rate).saturating_sub(1).max(1)
    }
}

pub(crate) async fn run(setup: &Setup) {
    let shape = setup.size.pick(Shape { dead: 100_000, rate: 2_000 }, Shape { dead: 2_000, rate: 500 });
    let receiver = Receiver::start().await;
    let stack = setup.stack(setup.profile()).count(Role::Carrier, 2).start().await;
    let others = shape.others();
    let first = 2 * others;
    add_dead(&setup.open(stack.redis()).await, &receiver, first..first + shape.dead).await;
    let neighbours = Neighbours { stack: &stack, receiver: &receiver, rate: RATE };
    let calm = neighbours.calm(others).await;

    receiver.expect(others..first + shape.dead);
    let start = ahead(Duration::from_secs(3));
    neighbours.submit(others..first, start).await;
    let probe = Probe::start(stack.redis()).await;
    sleep(Duration::try_from(start.duration_since(now())).unwrap_or_default()).await;
    let done = revive(&stack, shape).await;
    receiver.wait_for(others + shape.dead, Duration::from_secs(120)).await;
    let seen = probe.end(stack.redis()).await;
    assert_eq!(done["changed"], shape.dead, "each dead job is revived once: {done}");
    assert_eq!(receiver.board().duplicates(), 0, "no job is delivered twice");
    let seconds = seconds(&done);
    let (value, yardstick) =
        ((shape.dead as f64 / seconds).into(), Some(("asked for", (shape.rate as f64).into())));
    let with = json!({ "dead": shape.dead, "seconds": seconds });
    Figure { scenario: NAME, name: "revived", unit: "jobs/s", value, yardstick, with }.report();
    let with = json!({ "dead": shape.dead });
    seen.report(NAME, &with);
    neighbours.report(NAME, ("before the revive", calm), others, with);
}

/// Imports dead jobs into the store, past the API.
async fn add_dead(store: &Store, receiver: &Receiver, numbers: Range<usize>) {
    let history =
        Some(History { dead: Some("gone".to_owned()), attempts: 1, failures: 1, ..History::default() });
    let url = receiver.url(Channel::Main);
    let dead = numbers.map(|number| {
        let job = parse(&job(number, &url, &json!({ "topic": TOPIC })));
        ImportJob { job, history: history.clone() }
    });
    for (shard, jobs) in by_shard(store, dead, |dead| &dead.job.key) {
        for call in jobs.chunks(PER_CALL) {
            store.import(shard, call).await.expect("the store accepts");
        }
    }
}

/// Revives all dead jobs and returns the final progress. Panics if that takes three times as long as the rate allows.
async fn revive(stack: &Stack, shape: Shape) -> Value {
    let begun = stack.post(&format!("/v1/topics/{TOPIC}/dead/revive"), &json!({ "rate": shape.rate })).await;
    let location = begun.header("location").expect("where its progress is").to_owned();
    for _ in 0..30 * (shape.dead / shape.rate + 1) {
        sleep(Duration::from_millis(100)).await;
        let now = stack.get(&location).await.json();
        if now["state"] == "done" {
            return now;
        }
    }
    panic!("the bulk revive does not end");
}

/// The duration of a bulk operation in seconds, by the store's clock.
fn seconds(done: &Value) -> f64 {
    let time =
        |name: &str| done[name].as_str().and_then(|text| text.parse::<Timestamp>().ok()).expect("a time");
    time("ended_at").duration_since(time("started_at")).as_secs_f64()
}
