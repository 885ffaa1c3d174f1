//! Very many jobs of one topic due in the same millisecond, while other topics go on at a low, even rate: the
//! longest that Redis is busy at a time, how late the others are, and how much memory the notifier takes.

pub(super) mod probe;

use std::ops::Range;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::time::sleep;

use self::probe::Probe;
use super::backlog::{settled, submit};
use super::figure::{Figure, report};
use super::job::{URL, job};
use super::lateness::{ahead, batches};
use super::receiver::{Channel, Receiver};
use super::setup::Setup;
use super::usage::peak_mib;
use crate::{Role, Stack, now};

const NAME: &str = "herd";
/// Of the others: how many, and their jobs per second in all.
const TOPICS: usize = 10;
const RATE: usize = 100;
/// The numbers of far jobs, by which is seen how fast they can be submitted.
const FAR_FIRST: usize = 1_000_000_000;

/// How many there are, and for how long the others go on after the moment.
struct Shape {
    herd: usize,
    seconds: usize,
}

pub(super) async fn run(setup: &Setup) {
    let shape = setup.size.pick(Shape { herd: 1_000_000, seconds: 30 }, Shape { herd: 10_000, seconds: 3 });
    let receiver = Receiver::start().await;
    let stack = setup.stack(setup.profile()).count(Role::Carrier, 2).start().await;
    let calm = calm(&stack, &receiver, &shape).await;
    let others = RATE * shape.seconds;

    // The numbers of the herd come first, then those of the others.
    let first = others;
    let jobs = shape.herd + others;
    receiver.expect(first..first + jobs);
    let due = gather(&stack, &receiver, &shape, first).await;
    submit_others(&stack, &receiver.url(Channel::Beside), first + shape.herd..first + jobs, due).await;
    let probe = Probe::start(stack.redis()).await;
    sleep(Duration::try_from(due.duration_since(now())).unwrap_or_default()).await;
    receiver.wait_for(jobs, Duration::from_secs(600)).await;
    let seconds = now().duration_since(due).as_secs_f64();
    let seen = probe.end(stack.redis()).await;
    settled(&stack, others + jobs).await;

    let with = json!({ "herd": shape.herd, "handed_over_in_s": seconds, "longest": seen.command,
        "duplicates": receiver.board().duplicates() });
    report(NAME, "longest-command", seen.longest_ms, "ms", &with);
    let with = json!({ "herd": shape.herd, "pings": seen.pings });
    report(NAME, "longest-ping", seen.ping_max_ms, "ms", &with);
    let value = receiver.board().lateness(Channel::Beside).millis(0.99).into();
    let with = json!({ "herd": shape.herd, "topics": TOPICS, "rate": RATE, "jobs": others });
    let yardstick = Some(("before the herd", calm.into()));
    Figure { scenario: NAME, name: "others-p99", unit: "ms", value, yardstick, with }.report();
    let memory = peak_mib(stack.notifiers[0].pid());
    report(NAME, "notifier-memory", memory, "MiB", &json!({ "herd": shape.herd }));
}

/// The p99 of the others while there is nothing beside them.
async fn calm(stack: &Stack, receiver: &Receiver, shape: &Shape) -> f64 {
    let others = RATE * shape.seconds;
    receiver.expect(0..others);
    let url = receiver.url(Channel::Beside);
    submit_others(stack, &url, 0..others, ahead(Duration::from_secs(2))).await;
    receiver.wait_for(others, Duration::from_secs(60 + shape.seconds as u64)).await;
    receiver.board().lateness(Channel::Beside).millis(0.99)
}

/// Submits the herd and tells when it is due, which is after the last one is in: a few other jobs show before how
/// long that will take.
///
/// # Panics
/// When it takes twice as long.
async fn gather(stack: &Stack, receiver: &Receiver, shape: &Shape, first: usize) -> Timestamp {
    let far = FAR_FIRST..FAR_FIRST + shape.herd / 10;
    let rate = submit(stack, far, URL, &json!({ "delay": 86_400 })).await;
    let lead = 5.0 + 2.0 * shape.herd as f64 / rate;
    let due = ahead(Duration::from_secs_f64(lead));
    let herd = first..first + shape.herd;
    submit(stack, herd, &receiver.url(Channel::Main), &json!({ "at": due.to_string() })).await;
    assert!(now() < due, "submitting took longer than {lead} s");
    due
}

/// Jobs of other topics, due evenly from a moment on.
async fn submit_others(stack: &Stack, url: &str, numbers: Range<usize>, start: Timestamp) {
    let due = |n: usize| start + SignedDuration::from_micros((n * 1_000_000 / RATE) as i64);
    let one = |(n, number): (usize, usize)| {
        job(number, url, &json!({ "topic": format!("other.{:03}", n % TOPICS), "at": due(n).to_string() }))
    };
    let all: Vec<Value> = numbers.enumerate().map(one).collect();
    batches(stack, &all).await;
}
