//! Very many jobs of one topic due in the same millisecond, while other topics go on at a low, even rate: the longest
//! that one command keeps Redis busy, the lateness of the other topics, and the memory of the notifier.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use tokio::time::sleep;

use crate::backlog::{settled, submit};
use crate::figure::report;
use crate::job::URL;
use crate::probe::Probe;
use crate::receiver::{Channel, Receiver};
use crate::setup::Setup;
use crate::train::{Neighbours, ahead};
use crate::usage::peak_mib;
use ringback_testkit::{Role, Stack, now};

pub(crate) const NAME: &str = "herd";
/// Jobs per second of the other topics.
const RATE: usize = 100;
/// The first number of the far jobs that measure how fast jobs can be submitted.
const FAR_FIRST: usize = 1_000_000_000;

/// The size of the herd, and for how many seconds the other topics go on after it is due.
struct Shape {
    herd: usize,
    seconds: usize,
}

pub(crate) async fn run(setup: &Setup) {
    let shape = setup.size.pick(Shape { herd: 1_000_000, seconds: 30 }, Shape { herd: 10_000, seconds: 3 });
    let receiver = Receiver::start().await;
    let stack = setup.stack(setup.profile()).count(Role::Carrier, 2).start().await;
    let others = RATE * shape.seconds;
    let neighbours = Neighbours { stack: &stack, receiver: &receiver, rate: RATE };
    let calm = neighbours.calm(others).await;

    // The numbers of the herd come first, then those of the others.
    let first = others;
    let jobs = shape.herd + others;
    receiver.expect(first..first + jobs);
    let due = submit_herd(&stack, &receiver, &shape, first).await;
    neighbours.submit(first + shape.herd..first + jobs, due).await;
    let probe = Probe::start(stack.redis()).await;
    sleep(Duration::try_from(due.duration_since(now())).unwrap_or_default()).await;
    receiver.wait_for(jobs, Duration::from_secs(600)).await;
    let seconds = now().duration_since(due).as_secs_f64();
    let seen = probe.end(stack.redis()).await;
    settled(&stack, others + jobs).await;

    let with = json!({ "herd": shape.herd });
    let duplicates = receiver.board().duplicates();
    seen.report(NAME, &json!({ "herd": shape.herd, "delivered_in_s": seconds, "duplicates": duplicates }));
    report(NAME, "notifier-memory", peak_mib(stack.notifiers[0].pid()), "MiB", &with);
    neighbours.report(NAME, ("before the herd", calm), others, with);
}

/// Submits the herd and returns its due time. A few far jobs are submitted first, to estimate how long the herd takes:
/// it must be due only after all of it is submitted. Panics if that fails.
async fn submit_herd(stack: &Stack, receiver: &Receiver, shape: &Shape, first: usize) -> Timestamp {
    let far = FAR_FIRST..FAR_FIRST + shape.herd / 10;
    let rate = submit(stack, far, URL, &json!({ "delay": 86_400 })).await;
    let lead = 5.0 + 2.0 * shape.herd as f64 / rate;
    let due = ahead(Duration::from_secs_f64(lead));
    let herd = first..first + shape.herd;
    submit(stack, herd, &receiver.url(Channel::Main), &json!({ "at": due.to_string() })).await;
    assert!(now() < due, "submitting took longer than {lead} s");
    due
}
