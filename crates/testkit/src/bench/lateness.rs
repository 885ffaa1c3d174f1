//! Jobs due evenly, one after the other: how late each arrives.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::{Setup, job, quantile, report};
use crate::{Role, Sink, now};

pub(super) async fn run(setup: &Setup) {
    for rate in setup.size.pick(vec![1_000, 5_000], vec![500]) {
        at_rate(setup, rate, setup.size.pick(15 * rate, 1_000)).await;
    }
}

async fn at_rate(setup: &Setup, rate: usize, jobs: usize) {
    let sink = Sink::start().await;
    let options = setup.stack().count(Role::Carrier, 2);
    let stack = options.start().await;
    let url = sink.url("/late");
    // Far enough ahead that all are submitted before the first is due.
    let first = now() + SignedDuration::from_secs(6);
    let due = |n: usize| first + SignedDuration::from_micros((n * 1_000_000 / rate) as i64);
    let all: Vec<_> = (0..jobs).map(|n| job(n, &url, &json!({ "at": due(n).to_string() }))).collect();
    for batch in all.chunks(1000) {
        let (status, answer) = stack.batch(batch).await;
        assert_eq!((status, answer["refused"].as_u64()), (200, Some(0)), "a batch was refused");
    }
    let early = first.duration_since(now());
    assert!(early > SignedDuration::ZERO, "submitting took longer than planned");
    sink.wait_for(jobs, Duration::from_secs(60 + (jobs / rate) as u64)).await;
    let mut late: Vec<f64> = sink
        .arrivals()
        .iter()
        .map(|arrival| millis(arrival.at, arrival.due_at().expect("every attempt says when it was due")))
        .collect();
    late.sort_by(f64::total_cmp);
    let with = json!({ "rate": rate, "jobs": jobs, "arrived": late.len(), "earliest_ms": late[0] });
    for (figure, q) in [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)] {
        report("lateness", figure, quantile(&late, q), "ms", &with);
    }
}

fn millis(at: Timestamp, due: Timestamp) -> f64 {
    at.duration_since(due).as_secs_f64() * 1000.0
}
