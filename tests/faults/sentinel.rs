//! A master that sentinels watch (plain durability): killed, stopped or replaced by hand under load, replaced by a
//! replica that lags, and sentinels that die or are named wrongly.

mod cut_off;
mod disagreement;
mod users;

use ringback_testkit::{RedisSentinel, RedisServer, Role};
use tokio::time::sleep;

use super::redis_outage::{accepted_again, still_the_same_processes};
use super::steady_load::{CALLERS, SteadyLoad};
use crate::prelude::*;

/// Fail-overs, time-outs, locks and leases take this long at most.
const RECOVERY: Duration = Duration::from_secs(60);
/// How many jobs are accepted before something goes wrong.
const JOBS: usize = 60;

async fn start() -> (Stack, Sink) {
    let options = Stack::options().sentinel(RedisServer::options()).env("RINGBACK_SHARDS", "6");
    (options.count(Role::Carrier, 2).count(Role::Notifier, 2).start().await, Sink::start().await)
}

/// Waits until all roles work again: jobs are accepted, become due and are delivered. Asserts that no process has ended.
async fn works_again(stack: &mut Stack, sink: &Sink, name: &str) {
    let ids: Vec<_> = (0..20).map(|n| format!("{name}-{n}")).collect();
    for id in &ids {
        let job = with(job(sink, id), "delay", "500ms");
        accepted_again(stack, &job).await;
    }
    sink.wait_for_jobs(&ids, 1, RECOVERY).await;
    stack.ready(RECOVERY).await;
    still_the_same_processes(stack);
}

/// Waits until no job is pending. Returns how many of these jobs never arrived.
async fn lost(stack: &Stack, sink: &Sink, ids: &[String]) -> usize {
    for state in ["delayed", "ready", "reserved"] {
        stack.wait_count(state, 0, RECOVERY).await;
    }
    let counts = sink.counts();
    ids.iter().filter(|id| !counts.contains_key(*id)).count()
}

#[tokio::test]
async fn a_master_that_is_killed_under_load_is_replaced_for_all_processes() {
    let (mut stack, sink) = start().await;
    assert_eq!(stack.stats().await["store"]["kind"], "redis-sentinel");
    let load = SteadyLoad::start(&stack, &sink, "safe");
    load.more(JOBS).await;
    let safe = load.end().await;
    stack.sentinel_mut().are_in_sync(0).await;

    let load = SteadyLoad::start(&stack, &sink, "around");
    load.more(JOBS).await;
    stack.sentinel_mut().server_mut(0).kill();
    stack.sentinel_mut().another_master(0, 0).await;
    works_again(&mut stack, &sink, "after").await;
    let around = load.end().await;
    sink.wait_for_jobs(&safe, 1, RECOVERY).await;
    let lost = lost(&stack, &sink, &around).await;
    assert!(lost <= CALLERS, "{lost} of {} jobs are lost", around.len());
    assert!(around.len() > 100, "{} jobs are not a load", around.len());
}

/// The former master accepts writes for seconds after a fail-over by hand, unless it is paused.
#[tokio::test]
async fn a_master_that_is_paused_and_replaced_by_hand_under_load_loses_nothing() {
    let (mut stack, sink) = start().await;
    let load = SteadyLoad::start(&stack, &sink, "load");
    load.more(JOBS).await;
    let mut pause = redis::cmd("CLIENT");
    let pause = pause.arg("PAUSE").arg(20_000).arg("WRITE");
    let mut master = stack.sentinel_mut().servers()[0].client().await;
    pause.exec_async(&mut master).await.expect("CLIENT PAUSE");
    stack.sentinel_mut().are_in_sync(0).await;
    stack.sentinel_mut().fail_over().await;
    stack.sentinel_mut().another_master(0, 0).await;
    works_again(&mut stack, &sink, "after").await;
    let load = load.end().await;
    assert!(load.len() > 100, "{} jobs are not a load", load.len());
    sink.wait_for_jobs(&load, 1, RECOVERY).await;
}

#[tokio::test]
async fn a_stopped_master_and_sentinels_that_die_are_left_one_after_the_other() {
    let (mut stack, sink) = start().await;
    works_again(&mut stack, &sink, "before").await;
    stack.sentinel_mut().are_in_sync(0).await;
    stack.sentinel_mut().server_mut(0).stop();
    let master = stack.sentinel_mut().another_master(0, 0).await;
    works_again(&mut stack, &sink, "stopped").await;
    // The continued server still thinks that it is the master.
    stack.sentinel_mut().server_mut(0).cont();
    works_again(&mut stack, &sink, "continued").await;

    stack.sentinel_mut().sentinel_mut(0).kill();
    works_again(&mut stack, &sink, "two-sentinels").await;
    stack.sentinel_mut().are_in_sync(master).await;
    stack.sentinel_mut().server_mut(master).kill();
    stack.sentinel_mut().another_master(1, master).await;
    works_again(&mut stack, &sink, "second-kill").await;
    // Connected processes go on without sentinels.
    for sentinel in [1, 2] {
        stack.sentinel_mut().sentinel_mut(sentinel).kill();
        works_again(&mut stack, &sink, &format!("without-{sentinel}")).await;
    }
}

/// What the replicas had not received is lost with the master. The loss is noticed, and work goes on.
#[tokio::test]
async fn a_replica_that_lags_and_takes_over_shows_a_loss() {
    let (mut stack, sink) = start().await;
    works_again(&mut stack, &sink, "before").await;
    stack.sentinel_mut().are_in_sync(0).await;
    // More than the buffers of the sockets hold.
    let body = noise(b'x', 200_000);
    let jobs: Vec<Value> = (0..200)
        .map(|n| with(with(job(&sink, &format!("late-{n}")), "delay", "1h"), "body", body.as_str()))
        .collect();
    for replica in [1, 2] {
        stack.sentinel_mut().server_mut(replica).stop();
    }
    for chunk in jobs.chunks(20) {
        assert_eq!(stack.batch(chunk).await.1["accepted"], 20);
    }
    stack.sentinel_mut().server_mut(0).kill();
    for replica in [1, 2] {
        stack.sentinel_mut().server_mut(replica).cont();
    }
    stack.sentinel_mut().another_master(0, 0).await;
    works_again(&mut stack, &sink, "after").await;
    let left = stack.count_in("delayed").await;
    assert!(left < 200, "nothing was lost");
    stack.apis[0].wait_log("the store has lost accepted jobs", SOON).await;
}

#[tokio::test]
async fn a_wrong_name_ends_a_process_and_sentinels_that_are_away_are_waited_for() {
    let mut set = RedisSentinel::start(RedisServer::options()).await;
    let url = set.url();
    let (sentinels, _) = url.rsplit_once('/').expect("the name is at the end");
    let wrong = Stack::options().store(&format!("{sentinels}/wrong")).count(Role::Carrier, 0);
    let wrong = wrong.count(Role::Notifier, 0).count(Role::Api, 0).unchecked().start().await;
    let mut process = wrong.spec(Role::Carrier).start();
    assert_eq!(process.wait_exit(SOON).await.code(), Some(1), "{}", process.log());
    assert!(process.log().contains("the sentinels know no master named"), "{}", process.log());

    for sentinel in 0..3 {
        set.sentinel_mut(sentinel).kill();
    }
    let spec =
        Stack::options().store(&url).count(Role::Carrier, 0).count(Role::Notifier, 0).count(Role::Api, 0);
    let stack = spec.start().await;
    let mut process = stack.spec(Role::Carrier).start();
    process.wait_log("no sentinel answers", SOON).await;
    set.sentinel_mut(1).restart().await;
    process.ready(RECOVERY).await;
}

/// A fail-over by hand leaves the former master unchanged for about ten seconds.
#[tokio::test]
async fn a_former_master_that_still_answers_is_left_by_all_processes() {
    let (mut stack, sink) = start().await;
    works_again(&mut stack, &sink, "before").await;
    stack.sentinel_mut().fail_over().await;
    stack.sentinel_mut().another_master(0, 0).await;
    let former = &stack.sentinel_mut().servers()[0];
    let calls = async || former.command_calls().await.get("fcall").copied();
    eventually(SOON, "nobody calls the former master", async || {
        let before = calls().await;
        // This sleep waits for nothing: every process checks its master within it.
        sleep(Duration::from_millis(1_200)).await;
        if calls().await == before { Ok(()) } else { Err("it is called") }
    })
    .await;
    assert!(former.is_master().await, "it takes writes");
    works_again(&mut stack, &sink, "after").await;
}
