//! A single Redis that is away, silent, a replica or full, and comes back: submits are refused in time, and what was
//! accepted is delivered.

use bytes::Bytes;
use http::Method;
use ringback_testkit::figures::{Figure, Reached};
use ringback_testkit::{Persistence, RedisServer, Reply, Role, variable};
use tokio::time::Instant;

use super::refusals::is_because;
use crate::prelude::*;
use crate::redis_layout::keys;

/// How long it may take until everything works again: back-offs, time-outs, locks and leases that run out.
const RECOVERY: Duration = Duration::from_secs(60);
/// Within this the API answers whatever the store does.
const PROMISED: Duration = Duration::from_secs(2);
/// How often the memory is filled.
const FULL_CYCLES: u64 = 3;
/// The same for a debug build with much to do, on a machine that has much to do.
const BUSY: Duration = Duration::from_secs(3);

#[tokio::test]
async fn while_redis_is_gone_a_submit_is_refused_and_afterwards_all_that_was_accepted_arrives() {
    let options = Stack::options()
        .redis(RedisServer::options().persistence(Persistence::Always))
        .count(Role::Carrier, 2)
        .count(Role::Notifier, 2);
    let (mut stack, sink) = (options.start().await, Sink::start().await);
    let jobs: Vec<Value> =
        (0..300).map(|n| with(job(&sink, &format!("job-{n}")), "delay", format!("{}ms", n * 10))).collect();
    let (status, answer) = stack.batch(&jobs).await;
    assert_eq!((status, &answer["accepted"]), (200, &json!(300)), "{answer}");
    sink.wait_for(50, SOON).await;

    stack.redis_mut().kill();
    for n in 0..3 {
        is_refused(&stack, &job(&sink, &format!("refused-{n}")), Duration::from_secs(2)).await;
    }
    stack.redis_mut().restart().await;
    accepted_again(&stack, &job(&sink, "back")).await;

    let mut ids: Vec<String> = (0..300).map(|n| format!("job-{n}")).collect();
    ids.push("back".to_owned());
    sink.wait_for_jobs(&ids, 1, RECOVERY).await;
    for arrival in sink.arrivals() {
        assert!(arrival.due_at().is_some_and(|due| arrival.at >= due), "{} is early", arrival.job_id());
    }
    still_the_same_processes(&mut stack);
    stack.ready(RECOVERY).await;
}

#[tokio::test]
async fn a_silent_redis_is_refused_like_an_absent_one() {
    let (mut stack, sink) = (Stack::start().await, Sink::start().await);
    stack.redis_mut().stop();
    let silent = job(&sink, "silent");
    let mut took = Vec::new();
    for _ in 0..3 {
        let round = tokio::join!(
            refusal(stack.post("/v1/jobs", &silent)),
            refusal(stack.get("/v1/jobs/e2e/any")),
            refusal(stack.delete("/v1/jobs/e2e/any")),
            refusal(stack.get("/v1/stats")),
        );
        took.extend(<[Duration; 4]>::from(round).into_iter().max());
    }
    // A round may be held up by what else the machine does.
    assert!(took.iter().min() < Some(&PROMISED), "{took:?}");
    assert!(took.iter().max() < Some(&BUSY), "{took:?}");
    stack.redis_mut().cont();
    // The refused submit may have been carried out when Redis went on: then this one finds it there.
    accepted_again(&stack, &job(&sink, "silent")).await;
    sink.wait_for_job("silent", 1, RECOVERY).await;
    still_the_same_processes(&mut stack);
}

/// The time to parse large batches counts towards their answers, and delays no other request.
#[tokio::test]
async fn the_largest_batches_are_refused_by_a_silent_redis_in_time_too() {
    let (mut stack, sink) = (Stack::start().await, Sink::start().await);
    let batch = |name: &str| {
        Value::from_iter((0..10_000).map(|n| with(job(&sink, &format!("{name}-{n}")), "delay", "1h")))
    };
    let batches = ["a", "b", "c", "d"].map(|name| Bytes::from(batch(name).to_string()));
    stack.redis_mut().stop();
    let single = job(&sink, "single");
    let post =
        |body| refusal(stack.request(Method::POST, "/v1/jobs/batch", Some(("application/json", body))));
    let [a, b, c, d] = batches.map(post);
    let took = tokio::join!(a, b, c, d, refusal(stack.post("/v1/jobs", &single)));
    let took: [Duration; 5] = took.into();
    assert!(took.iter().max() < Some(&BUSY), "{took:?}");
    stack.redis_mut().cont();
    accepted_again(&stack, &job(&sink, "back")).await;
    still_the_same_processes(&mut stack);
}

#[tokio::test]
async fn a_redis_that_became_a_replica_is_reported_and_takes_nothing_until_it_is_a_master_again() {
    let (mut stack, sink) = (Stack::start().await, Sink::start().await);
    let redis = stack.redis().client().await;
    let replica_of = |host: &'static str, port: &'static str| {
        let (mut redis, mut command) = (redis.clone(), redis::cmd("REPLICAOF"));
        command.arg(host).arg(port);
        async move { command.exec_async(&mut redis).await.expect("redis answers") }
    };
    // Nobody listens at this master, so the replica keeps its data and waits.
    replica_of("127.0.0.1", "1").await;
    is_refused(&stack, &job(&sink, "refused"), Duration::from_secs(2)).await;
    stack.apis[0].wait_readiness(503, "replica", SOON).await;
    replica_of("NO", "ONE").await;
    accepted_again(&stack, &job(&sink, "back")).await;
    sink.wait_for_job("back", 1, RECOVERY).await;
    stack.ready(RECOVERY).await;
}

#[tokio::test]
async fn a_call_in_flight_while_redis_restarts_is_settled_afterwards() {
    let redis = RedisServer::options().persistence(Persistence::Always);
    let (mut stack, sink) = (Stack::options().redis(redis).start().await, Sink::start().await);
    sink.answer_job("flies", Answer::status(200).held());
    stack.accept(&job(&sink, "flies")).await;
    sink.wait_for_job("flies", 1, SOON).await;
    stack.redis_mut().kill();
    sink.answer_job("flies", Answer::status(200));
    sink.release();
    stack.redis_mut().restart().await;
    eventually(RECOVERY, "the job is done", async || match stack.job(TOPIC, "flies").await {
        (200, job) if job["state"] == "done" => Ok(()),
        (status, answer) => Err(format!("{status} {answer}")),
    })
    .await;
}

#[tokio::test]
async fn a_redis_that_lost_its_data_is_worked_with_again() {
    let (mut stack, sink) = (Stack::start().await, Sink::start().await);
    stack.redis_mut().restart().await;
    accepted_again(&stack, &job(&sink, "fresh")).await;
    sink.wait_for_job("fresh", 1, RECOVERY).await;
    still_the_same_processes(&mut stack);
}

#[tokio::test]
async fn a_full_redis_refuses_new_jobs_and_still_drains() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    let jobs: Vec<Value> = (0..200)
        .map(|n| with(job(&sink, &format!("job-{n}")), "delay", format!("{}ms", 1_000 + n * 5)))
        .collect();
    assert_eq!(stack.batch(&jobs).await.1["accepted"], 200);

    let mut redis = stack.redis().client().await;
    let limit = stack.redis().used_memory().await / 2;
    set_limit(&mut redis, limit).await;
    is_refused(&stack, &job(&sink, "refused"), Duration::from_secs(2)).await;
    let ids: Vec<String> = (0..200).map(|n| format!("job-{n}")).collect();
    sink.wait_for_jobs(&ids, 1, SOON).await;
    stack.wait_count("done", 200, SOON).await;

    set_limit(&mut redis, 0).await;
    accepted_again(&stack, &job(&sink, "fits")).await;
    sink.wait_for_job("fits", 1, SOON).await;
}

#[tokio::test]
async fn a_redis_that_is_nearly_full_drains_first_and_then_takes_jobs_again() {
    let options = Stack::options().count(Role::Notifier, 0);
    let (mut stack, sink) = (options.start().await, Sink::start().await);
    // Bodies so large that they are most of the memory that is freed.
    let body = noise(b'x', 100_000);
    let cycles = variable("RINGBACK_TEST_FULL_MEMORY").unwrap_or(FULL_CYCLES);
    for cycle in 0..cycles {
        fills_and_drains(&mut stack, &sink, cycle, &body).await;
    }
    Reached::new(Figure::FullMemory, "a nearly full redis", cycles).write();
}

/// Fills Redis up to a limit of memory and asserts that submits are refused. Then adds a notifier, waits until it has
/// delivered the jobs and submits are accepted, and removes limit and notifier. No notifier may run before.
async fn fills_and_drains(stack: &mut Stack, sink: &Sink, cycle: u64, body: &str) {
    let ids: Vec<String> = (0..100).map(|n| format!("job-{cycle}-{n}")).collect();
    let jobs: Vec<Value> = ids.iter().map(|id| with(job(sink, id), "body", body)).collect();
    for chunk in jobs.chunks(20) {
        assert_eq!(stack.batch(chunk).await.1["accepted"], 20);
    }

    let mut redis = stack.redis().client().await;
    let limit = stack.redis().used_memory().await + 1024 * 1024;
    set_limit(&mut redis, limit).await;
    let small = job(sink, &format!("small-{cycle}"));
    eventually(SOON, "submits are refused", async || match stack.submit(&small).await {
        (503, problem) if is_because(&problem, "memory limit") => Ok(()),
        (status, answer) => Err(format!("{status} {answer}")),
    })
    .await;
    is_refused(stack, &job(sink, "refused"), Duration::from_secs(2)).await;
    assert_eq!(stack.batch(&[job(sink, "refused")]).await.0, 503);
    assert_eq!(stack.job(TOPIC, "refused").await.0, 404);

    stack.add(Role::Notifier).await;
    sink.wait_for_jobs(&ids, 1, RECOVERY).await;
    let fits = format!("fits-{cycle}");
    accepted_again(stack, &job(sink, &fits)).await;
    sink.wait_for_job(&fits, 1, SOON).await;
    still_the_same_processes(stack);
    set_limit(&mut redis, 0).await;
    stack.notifiers.clear();
}

#[tokio::test]
async fn leases_that_cannot_be_recovered_are_logged_once_and_delay_no_due_job() {
    let stack = Stack::options().env("RINGBACK_SHARDS", "1").count(Role::Notifier, 0).start().await;
    stack.accept(&json!({"topic": "pull", "id": "expires"})).await;
    stack.reserve_one("pull", &json!({"ttr": "300ms"})).await;
    // Gives the key of the leases another type.
    let mut redis = stack.redis().client().await;
    let keys: Vec<String> = keys::all(&mut redis, "batches").await;
    let [batches] = keys.as_slice() else { panic!("{keys:?}") };
    let kept = format!("{batches}-kept");
    redis::cmd("RENAME").arg(batches).arg(&kept).query_async::<()>(&mut redis).await.expect("RENAME");
    redis::cmd("SET").arg(batches).arg("x").query_async::<()>(&mut redis).await.expect("SET");
    let logged = |what: &str| stack.carriers[0].log().matches(what).count();
    let is_logged = async |what: &str| {
        eventually(SOON, what, async || match logged(what) {
            0 => Err("it is not logged"),
            _ => Ok(()),
        })
        .await;
    };
    is_logged("pass failed").await;

    for n in 0..20 {
        stack.accept(&json!({"topic": "pull", "id": n.to_string(), "delay": format!("{}ms", n * 100)})).await;
    }
    let since = Instant::now();
    stack.wait_count("ready", 20, SOON).await;
    assert!(since.elapsed() < Duration::from_secs(8), "{:?}", since.elapsed());
    assert_eq!((logged("pass failed"), logged("passes succeed again")), (1, 0));

    redis::cmd("RENAME").arg(&kept).arg(batches).query_async::<()>(&mut redis).await.expect("RENAME");
    stack.wait_state("pull", "expires", "delayed", SOON).await;
    is_logged("passes succeed again").await;
    assert_eq!(logged("pass failed"), 1);
}

/// Submits a job, and asserts that it is refused with 503 in less than `within`.
async fn is_refused(stack: &Stack, job: &Value, within: Duration) {
    let took = refusal(stack.post("/v1/jobs", job)).await;
    assert!(took < within, "the answer took {took:?}");
}

/// Awaits a response that must be 503 with Retry-After and problem+json. Returns how long that took.
async fn refusal(request: impl Future<Output = Reply>) -> Duration {
    let begin = Instant::now();
    let reply = request.await;
    let took = begin.elapsed();
    assert_eq!(reply.status, 503, "{:?}", reply.body);
    assert_eq!(reply.header("content-type"), Some("application/problem+json"));
    let wait = reply.header("retry-after").and_then(|seconds| seconds.parse::<u64>().ok());
    assert!(wait.is_some_and(|seconds| seconds >= 1), "{:?}", reply.headers);
    took
}

/// Submits a job. Succeeds for 201, and for 200 because an earlier submit may have arrived; else describes the answer.
pub(super) async fn accepted(stack: &Stack, job: &Value) -> Result<(), String> {
    match stack.submit(job).await {
        (200 | 201, _) => Ok(()),
        (status, answer) => Err(format!("{status} {answer}")),
    }
}

/// Repeats a submit until the job is accepted. Panics after [`RECOVERY`].
pub(super) async fn accepted_again(stack: &Stack, job: &Value) {
    eventually(RECOVERY, "submits are accepted again", async || accepted(stack, job).await).await;
}

async fn set_limit(redis: &mut redis::aio::MultiplexedConnection, bytes: u64) {
    let mut config = redis::cmd("CONFIG");
    config.arg("SET").arg("maxmemory").arg(bytes).query_async::<()>(redis).await.expect("CONFIG SET");
}

/// Asserts that no process has ended: all have recovered by themselves.
pub(super) fn still_the_same_processes(stack: &mut Stack) {
    for process in stack.processes_mut() {
        assert_eq!(process.exit_status(), None, "{}", process.log());
    }
}

/// Waits until no job is pending and all processes are ready. Asserts that none has ended.
pub(super) async fn nothing_waits(stack: &mut Stack) {
    for state in ["delayed", "ready", "reserved"] {
        stack.wait_count(state, 0, RECOVERY).await;
    }
    stack.ready(RECOVERY).await;
    still_the_same_processes(stack);
}

/// Waits until all acknowledged jobs are delivered and nothing is pending. Asserts that no loss is noticed.
pub(super) async fn nothing_is_lost(mut stack: Stack, sink: &Sink, acknowledged: &[String]) {
    sink.wait_for_jobs(acknowledged, 1, RECOVERY).await;
    nothing_waits(&mut stack).await;
    let check = stack.check().await;
    assert!(check.clean && check.loss.is_none(), "{check:?}");
}
