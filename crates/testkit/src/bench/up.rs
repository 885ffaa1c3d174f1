//! One process on the embedded store, over HTTP: single submits from many connections, each
//! durable before it is answered, and then a backlog handed over.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::usage::{cpu_seconds, resident_mib};
use super::{Setup, job, report};
use crate::{Sink, Stack, http_client};

/// Who submits, each one after the other.
const CONNECTIONS: usize = 64;
/// Longer than submitting takes: nothing is handed over meanwhile.
const AHEAD: Duration = Duration::from_secs(3600);

pub(super) async fn run(setup: &Setup) {
    let sink = Sink::counting().await;
    let stack = setup.stack().store("embedded:./data").in_one_process().start().await;
    let jobs = setup.size.pick(60_000, 3_000);
    submit(&stack, jobs, &sink.url("/far")).await;
    hand_over(&stack, jobs, &sink).await;
}

async fn submit(stack: &Stack, jobs: usize, url: &str) {
    let client = http_client();
    let far = json!({ "delay": AHEAD.as_secs() });
    let bodies: Vec<Bytes> = (0..jobs).map(|n| job(n, url, &far).to_string().into()).collect();
    let started = Instant::now();
    let (client, url) = (&client, &stack.url("/v1/jobs"));
    join_all(bodies.chunks(jobs.div_ceil(CONNECTIONS)).map(|mine| async move {
        for body in mine {
            let request = client.post(url).header("content-type", "application/json");
            let answer = request.body(body.clone()).send().await.expect("an answer");
            assert_eq!(answer.status(), 201);
            answer.bytes().await.expect("the whole answer");
        }
    }))
    .await;
    let rate = jobs as f64 / started.elapsed().as_secs_f64();
    report("up", "submit-one", rate, "jobs/s", &with(stack, json!({ "connections": CONNECTIONS })));
}

/// Jobs that are due are handed over while the others come in, so the rate is that of both.
async fn hand_over(stack: &Stack, jobs: usize, sink: &Sink) {
    let url = sink.url("/now");
    let all: Vec<_> = (jobs..2 * jobs).map(|n| job(n, &url, &json!({}))).collect();
    let started = Instant::now();
    for batch in all.chunks(1000) {
        let (status, answer) = stack.batch(batch).await;
        assert_eq!((status, answer["refused"].as_u64()), (200, Some(0)), "a batch was refused");
    }
    sink.wait_until("all have arrived", Duration::from_secs(300), |_| sink.seen() >= jobs).await;
    let rate = jobs as f64 / started.elapsed().as_secs_f64();
    report("up", "handed-over", rate, "jobs/s", &with(stack, json!({ "jobs": jobs })));
}

fn with(stack: &Stack, mut more: Value) -> Value {
    let pid = stack.ups[0].pid();
    more["cpu_s"] = cpu_seconds(pid).into();
    more["resident_mib"] = resident_mib(pid).into();
    more
}
