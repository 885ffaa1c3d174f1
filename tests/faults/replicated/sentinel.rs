//! A master that sentinels watch, with `RINGBACK_DURABILITY=replicated`: killed under load, and replaced by a replica that
//! lags.

use ringback_testkit::{Persistence, Preload, RedisServer, Role, Sink, Stack, eventually};

use super::super::durability::unready;
use super::super::outage::{accepted, still_the_same_processes};
use super::super::runs_all_topologies;
use super::super::steady_load::SteadyLoad;
use super::RECOVERY;
use crate::sample_jobs::job;

/// How many jobs are accepted before something goes wrong, and afterwards.
const JOBS: usize = 100;

async fn start() -> (Stack, Sink) {
    let servers = RedisServer::options().persistence(Persistence::Always);
    let options = Stack::options().sentinel(servers).env("RINGBACK_SHARDS", "6");
    let options = options.env("RINGBACK_DURABILITY", "replicated").count(Role::Api, 2);
    (options.start().await, Sink::counting().await)
}

/// Everything that was acknowledged is delivered, and no loss is noticed.
async fn is_whole(mut stack: Stack, sink: &Sink, ids: &[String]) {
    sink.wait_for_jobs(ids, 1, RECOVERY).await;
    for state in ["delayed", "ready", "reserved"] {
        stack.wait_count(state, 0, RECOVERY).await;
    }
    stack.ready(RECOVERY).await;
    let audit = stack.audit().await;
    assert!(audit.clean && audit.loss.is_none(), "{audit:?}");
    still_the_same_processes(&mut stack);
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_when_a_master_that_sentinels_watch_is_killed_under_load() {
    let (mut stack, sink) = start().await;
    assert_eq!(stack.stats().await["store"]["profile"], "replicated");
    let load = SteadyLoad::start(&stack, &sink, "load");
    load.more(JOBS).await;
    for replica in [1, 2] {
        stack.sentinel_mut().server_mut(replica).stop();
    }
    stack.sentinel_mut().servers()[0].writes_without_replicas().await;
    stack.sentinel_mut().server_mut(0).kill();
    for replica in [1, 2] {
        stack.sentinel_mut().server_mut(replica).cont();
    }
    stack.sentinel_mut().another_master(0, 0).await;
    load.more(JOBS).await;
    is_whole(stack, &sink, &load.end().await).await;
}

/// It asks all sentinels, and the one on the side of the former master names that.
#[tokio::test]
async fn a_process_that_reaches_both_sides_of_a_partition_follows_the_new_master_while_it_lasts() {
    let preload = Preload::compile().expect("there is a C compiler, which links these tests too");
    let servers = RedisServer::options().persistence(Persistence::Always).behind_proxies(preload);
    let options = Stack::options().sentinel(servers).env("RINGBACK_DURABILITY", "replicated");
    let (mut stack, sink) = (options.start().await, Sink::counting().await);
    let load = SteadyLoad::start(&stack, &sink, "load");
    load.more(JOBS).await;
    stack.sentinel_mut().part(0, 0);
    unready(&stack.apis[0], "no replica keeps up").await;
    stack.sentinel_mut().another_master(1, 0).await;
    load.more(JOBS).await;
    stack.sentinel_mut().join();
    is_whole(stack, &sink, &load.end().await).await;
}

/// Both replicas are behind, so nothing is acknowledged that the one lacks which takes over.
#[tokio::test]
async fn nothing_acknowledged_is_lost_when_replicas_that_lag_take_over() {
    if !runs_all_topologies() {
        return;
    }
    let (mut stack, sink) = start().await;
    let load = SteadyLoad::start(&stack, &sink, "load");
    load.more(JOBS).await;
    for replica in [1, 2] {
        stack.sentinel_mut().server_mut(replica).stop();
    }
    unready(&stack.apis[0], "no replica keeps up").await;
    stack.sentinel_mut().server_mut(0).kill();
    for replica in [1, 2] {
        stack.sentinel_mut().server_mut(replica).cont();
    }
    stack.sentinel_mut().another_master(0, 0).await;
    let after = job(&sink, "after");
    eventually(RECOVERY, "submits are accepted again", async || accepted(&stack, &after).await).await;
    load.more(JOBS).await;
    is_whole(stack, &sink, &load.end().await).await;
}
