//! Redis comes back without jobs that it had accepted, emptied or with older data: the loss is noticed, and submits
//! wait until it is accepted or the data are back.

use ringback_testkit::{Persistence, Proxy, RedisServer, Reply, Role};

use super::redis_outage::accepted_again;
use crate::cli::ringback;
use crate::prelude::*;

/// How long it may take until everything works again.
const RECOVERY: Duration = Duration::from_secs(60);

fn stack(persistence: Persistence) -> StackOptions {
    Stack::options().redis(RedisServer::options().persistence(persistence))
}

/// Submits `count` jobs that are due in an hour.
pub(super) async fn accept(stack: &Stack, sink: &Sink, name: &str, count: usize) {
    for n in 0..count {
        stack.accept(&with(job(sink, &format!("{name}-{n}")), "delay", "1h")).await;
    }
}

async fn accept_loss(stack: &Stack, run_id: &str) -> Reply {
    stack.post("/v1/check/accept-loss", &json!({"run_id": run_id})).await
}

async fn loses(stack: &Stack, sink: &Sink) -> Value {
    let refused = job(sink, "refused");
    eventually(RECOVERY, "the loss is noticed", async || match stack.submit(&refused).await {
        (503, problem) if problem["detail"].as_str().is_some_and(|detail| detail.contains("has lost")) => {
            Ok(problem)
        }
        (status, answer) => Err(format!("{status} {answer}")),
    })
    .await
}

/// The text of `/readyz` of the first API, once it reports a loss.
async fn unready(stack: &Stack) -> String {
    stack.apis[0].wait_readiness(503, "has lost", RECOVERY).await
}

#[tokio::test]
async fn an_emptied_store_that_synced_each_job_takes_no_more_until_the_loss_is_accepted() {
    let mut stack = stack(Persistence::Always).count(Role::Api, 2).start().await;
    let sink = Sink::start().await;
    accept(&stack, &sink, "early", 40).await;
    stack.redis_mut().restart_empty().await;

    let problem = loses(&stack, &sink).await;
    assert!(problem["detail"].as_str().is_some_and(|d| d.contains("--accept-loss")), "{problem}");
    unready(&stack).await;
    let check = eventually(SOON, "the loss is counted", async || {
        let check = stack.check().await;
        if check.loss.as_ref().is_some_and(|loss| loss.jobs == 40) {
            Ok(check)
        } else {
            Err(format!("{check:?}"))
        }
    })
    .await;
    assert!(!check.clean && check.found == 0, "{check:?}");

    let run_id = check.loss.expect("a loss").run_id;
    let other = accept_loss(&stack, "abc").await;
    other.refused(409, &run_id);
    for _ in 0..2 {
        let accepted = accept_loss(&stack, &run_id).await;
        assert_eq!(accepted.parts(), (200, json!({"run_id": run_id, "jobs": 40})));
    }
    stack.accept(&job(&sink, "late")).await;
    sink.wait_for_job("late", 1, SOON).await;
    stack.ready(RECOVERY).await;
    assert!(stack.check().await.clean);
    assert_eq!(accept_loss(&stack, "abc").await.status, 409);
}

#[tokio::test]
async fn the_command_line_shows_a_loss_and_accepts_it() {
    let mut stack = stack(Persistence::Always).start().await;
    let sink = Sink::start().await;
    let server = stack.url("");
    let run = ringback(&server, &["check", "--accept-loss"]).await;
    assert_eq!((run.code, run.err.as_str()), (Some(1), "no loss of jobs waits to be accepted\n"));
    accept(&stack, &sink, "early", 3).await;
    stack.redis_mut().restart_empty().await;
    loses(&stack, &sink).await;

    let run = ringback(&server, &["check"]).await;
    assert!(run.code == Some(1) && run.out.contains("at least 3"), "{run:?}");
    assert!(run.out.contains("ringback check --accept-loss="), "{run:?}");
    let run = ringback(&server, &["check", "--accept-loss=xyz"]).await;
    assert!(run.code == Some(1) && run.err.contains("run_id"), "{run:?}");
    let run = ringback(&server, &["check", "--accept-loss"]).await;
    assert!(run.code == Some(0) && run.out.contains("at least 3 jobs"), "{run:?}");
    stack.accept(&job(&sink, "late")).await;
    stack.ready(RECOVERY).await;
}

#[tokio::test]
async fn older_data_are_noticed_and_what_they_hold_is_delivered_meanwhile() {
    let mut stack = stack(Persistence::Always).start().await;
    let sink = Sink::start().await;
    for n in 0..10 {
        stack.accept(&with(job(&sink, &format!("kept-{n}")), "delay", "5s")).await;
    }
    let copy = stack.redis().copy_data();
    accept(&stack, &sink, "lost", 20).await;
    stack.redis_mut().restart_with(&copy).await;

    loses(&stack, &sink).await;
    let kept: Vec<String> = (0..10).map(|n| format!("kept-{n}")).collect();
    sink.wait_for_jobs(&kept, 1, RECOVERY).await;
    let refused = stack.submit(&job(&sink, "refused")).await;
    assert_eq!(refused.0, 503, "{refused:?}");
    let loss = stack.check().await.loss.expect("a loss");
    assert_eq!(loss.jobs, 20);
    let accepted = accept_loss(&stack, &loss.run_id).await;
    assert_eq!(accepted.status, 200, "{accepted:?}");
    stack.accept(&job(&sink, "late")).await;
    sink.wait_for_job("late", 1, SOON).await;
    stack.ready(RECOVERY).await;
}

#[tokio::test]
async fn a_flush_is_noticed_though_the_server_goes_on() {
    let stack = stack(Persistence::Always).start().await;
    let sink = Sink::start().await;
    accept(&stack, &sink, "early", 5).await;
    let mut redis = stack.redis().client().await;
    redis::cmd("FLUSHALL").exec_async(&mut redis).await.expect("FLUSHALL");
    // The next submit already notices the loss.
    let (status, problem) = stack.submit(&job(&sink, "early-0")).await;
    assert_eq!(status, 503, "{problem}");
    let loss = stack.check().await.loss.expect("a loss");
    assert_eq!(loss.jobs, 5);
    let accepted = accept_loss(&stack, &loss.run_id).await;
    assert_eq!(accepted.status, 200, "{accepted:?}");
    assert_eq!(stack.submit(&with(job(&sink, "early-0"), "delay", "1h")).await.0, 201);
}

#[tokio::test]
async fn an_emptied_store_that_keeps_less_goes_on_by_itself_and_says_what_is_lost() {
    let mut stack = stack(Persistence::EverySec).start().await;
    let sink = Sink::start().await;
    accept(&stack, &sink, "early", 7).await;
    stack.redis_mut().restart_empty().await;
    accepted_again(&stack, &job(&sink, "late")).await;
    sink.wait_for_job("late", 1, RECOVERY).await;
    let log = stack.apis[0].log();
    let lost: u64 = log
        .lines()
        .filter(|line| line.contains("has lost accepted jobs of a shard"))
        .filter_map(|line| line.split("jobs=").nth(1)?.split(' ').next()?.parse::<u64>().ok())
        .sum();
    assert_eq!(lost, 7, "{log}");
    assert!(stack.check().await.clean);
    let (status, _) = stack.job(TOPIC, "early-0").await;
    assert_eq!(status, 404);
}

/// Waits until submits are accepted again. Asserts that no loss is left, although nobody has accepted one, and that the
/// job `early-0` is there.
async fn is_taken_back(stack: &mut Stack, sink: &Sink, name: &str) {
    accepted_again(stack, &job(sink, name)).await;
    stack.ready(RECOVERY).await;
    assert_eq!(stack.check().await.loss, None);
    assert_eq!(stack.job(TOPIC, "early-0").await.0, 200);
}

#[tokio::test]
async fn right_files_that_are_put_back_bring_submits_back() {
    let mut stack = stack(Persistence::Always).count(Role::Api, 2).start().await;
    let sink = Sink::start().await;
    accept(&stack, &sink, "early", 20).await;
    let right = stack.redis().copy_data();
    stack.redis_mut().restart_empty().await;
    loses(&stack, &sink).await;
    unready(&stack).await;
    // A process that is started meanwhile accepts submits again too, once the data are back.
    stack.apis[1].kill();
    stack.apis[1].restart();
    unready(&stack).await;
    stack.redis_mut().restart_with(&right).await;
    is_taken_back(&mut stack, &sink, "late").await;
}

#[tokio::test]
async fn older_files_that_are_put_back_do_not_bring_submits_back() {
    let mut stack = stack(Persistence::Always).start().await;
    let sink = Sink::start().await;
    accept(&stack, &sink, "early", 10).await;
    let older = stack.redis().copy_data();
    accept(&stack, &sink, "more", 20).await;
    let right = stack.redis().copy_data();
    stack.redis_mut().restart_empty().await;
    loses(&stack, &sink).await;
    stack.redis_mut().restart_with(&older).await;
    // The API answers 503 until it has connected again.
    eventually(RECOVERY, "so many are missing", async || {
        let reply = stack.get("/v1/check").await;
        let is_right = reply.status == 200 && reply.json()["loss"]["jobs"].as_u64() >= Some(20);
        if is_right { Ok(()) } else { Err(format!("{} {:?}", reply.status, reply.body)) }
    })
    .await;
    loses(&stack, &sink).await;
    stack.redis_mut().restart_with(&right).await;
    is_taken_back(&mut stack, &sink, "late").await;
}

#[tokio::test]
async fn a_database_that_is_swapped_there_and_back_brings_submits_back() {
    let mut stack = stack(Persistence::Always).start().await;
    let sink = Sink::start().await;
    accept(&stack, &sink, "early", 20).await;
    let mut redis = stack.redis().client().await;
    for name in ["first", "second"] {
        for is_back in [false, true] {
            redis::cmd("SWAPDB").arg(0).arg(1).exec_async(&mut redis).await.expect("SWAPDB");
            if !is_back {
                loses(&stack, &sink).await;
            }
        }
        is_taken_back(&mut stack, &sink, name).await;
    }
}

#[tokio::test]
async fn a_name_that_leads_to_an_empty_store_for_a_moment_brings_submits_back() {
    let server = async || RedisServer::options().persistence(Persistence::Always).start().await;
    let (right, empty) = (server().await, server().await);
    let proxy = Proxy::start(right.port());
    let mut stack = Stack::options().store(&format!("redis://127.0.0.1:{}", proxy.port())).start().await;
    let sink = Sink::start().await;
    accept(&stack, &sink, "early", 20).await;
    proxy.lead_to(empty.port());
    proxy.cut();
    loses(&stack, &sink).await;
    proxy.lead_to(right.port());
    proxy.cut();
    is_taken_back(&mut stack, &sink, "late").await;
}

/// As if a node of a cluster was emptied that does not have the installation's row.
#[tokio::test]
async fn shards_that_come_back_bring_submits_back_though_the_row_was_there_all_the_time() {
    let mut stack = stack(Persistence::Always).start().await;
    let sink = Sink::start().await;
    accept(&stack, &sink, "early", 20).await;
    let mut redis = stack.redis().client().await;
    let shards: Vec<String> = redis::cmd("KEYS").arg("*:shard").query_async(&mut redis).await.expect("KEYS");
    for shard in &shards {
        let aside = format!("aside-{shard}");
        redis::cmd("RENAME").arg(shard).arg(aside).exec_async(&mut redis).await.expect("RENAME");
    }
    loses(&stack, &sink).await;
    for shard in &shards {
        let aside = format!("aside-{shard}");
        redis::cmd("RENAME").arg(aside).arg(shard).exec_async(&mut redis).await.expect("RENAME");
    }
    is_taken_back(&mut stack, &sink, "late").await;
}
