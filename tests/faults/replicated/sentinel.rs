//! `RINGBACK_DURABILITY=replicated` on a master with sentinels, which is killed, cut off or replaced under load, comes
//! back during its replacement, or is replaced by a replica that lags: no acknowledged job is lost.

use ringback_testkit::{Persistence, Preload, RedisServer, Role};
use tokio::time::sleep;

use super::super::redis_outage::{accepted_again, nothing_is_lost};
use super::super::runs_all_topologies;
use super::super::steady_load::SteadyLoad;
use super::super::weaker_store::unready;
use super::RECOVERY;
use crate::prelude::*;

/// How many jobs are accepted before something goes wrong, and afterwards.
const JOBS: usize = 100;

async fn start() -> (Stack, Sink) {
    let servers = RedisServer::options().persistence(Persistence::Always);
    let options = Stack::options().sentinel(servers).env("RINGBACK_SHARDS", "6");
    let options = options.env("RINGBACK_DURABILITY", "replicated").count(Role::Api, 2);
    (options.start().await, Sink::counting().await)
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
    nothing_is_lost(stack, &sink, &load.end().await).await;
}

/// The process asks all sentinels, and the one on the side of the former master names that.
#[tokio::test]
async fn a_process_that_reaches_both_sides_of_a_partition_follows_the_new_master_while_it_lasts() {
    let preload = Preload::compile().expect("there is a C compiler, which links these tests too");
    let servers = RedisServer::options().persistence(Persistence::Always).behind_proxies(preload);
    let options = Stack::options().sentinel(servers).env("RINGBACK_DURABILITY", "replicated");
    let (mut stack, sink) = (options.start().await, Sink::counting().await);
    let load = SteadyLoad::start(&stack, &sink, "load");
    load.more(JOBS).await;
    stack.sentinel_mut().part(0, 0);
    unready(&stack.apis[0], "too few replicas keep up").await;
    stack.sentinel_mut().another_master(1, 0).await;
    load.more(JOBS).await;
    stack.sentinel_mut().join();
    nothing_is_lost(stack, &sink, &load.end().await).await;
}

/// Nothing is acknowledged while both replicas are behind, so the replica that takes over has all acknowledged jobs.
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
    unready(&stack.apis[0], "too few replicas keep up").await;
    stack.sentinel_mut().server_mut(0).kill();
    for replica in [1, 2] {
        stack.sentinel_mut().server_mut(replica).cont();
    }
    stack.sentinel_mut().another_master(0, 0).await;
    accepted_again(&stack, &job(&sink, "after")).await;
    load.more(JOBS).await;
    nothing_is_lost(stack, &sink, &load.end().await).await;
}

/// The former master accepts writes for seconds, while the other replica follows it.
#[tokio::test]
async fn nothing_acknowledged_is_lost_when_a_master_is_replaced_by_hand_under_load() {
    let (mut stack, sink) = start().await;
    let load = SteadyLoad::start(&stack, &sink, "load");
    load.more(JOBS).await;
    stack.sentinel_mut().fail_over().await;
    stack.sentinel_mut().another_master(0, 0).await;
    load.more(JOBS).await;
    nothing_is_lost(stack, &sink, &load.end().await).await;
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_when_a_master_comes_back_while_it_is_replaced() {
    if !runs_all_topologies() {
        return;
    }
    let (mut stack, sink) = start().await;
    let load = SteadyLoad::start(&stack, &sink, "load");
    let mut master = 0;
    for away in [1_500, 1_800, 2_100, 2_400, 2_700] {
        load.more(JOBS).await;
        stack.sentinel_mut().are_in_sync(master).await;
        stack.sentinel_mut().server_mut(master).kill();
        sleep(Duration::from_millis(away)).await;
        stack.sentinel_mut().server_mut(master).restart().await;
        // Sentinels may take a while to agree what is to come of it, or may not have replaced it at all.
        stack.ready(RECOVERY).await;
        load.more(JOBS).await;
        master = stack.sentinel_mut().master_of(0).await;
    }
    nothing_is_lost(stack, &sink, &load.end().await).await;
}

/// Sentinels leave a replica out of a fail-over even before they call it down.
#[tokio::test]
async fn a_replica_that_hangs_is_not_waited_for_when_it_cannot_take_over() {
    let (mut stack, sink) = start().await;
    stack.sentinel_mut().server_mut(1).stop();
    unready(&stack.apis[0], "too few replicas keep up").await;
    accepted_again(&stack, &job(&sink, "meanwhile")).await;
    stack.ready(RECOVERY).await;
    stack.sentinel_mut().server_mut(1).cont();
    nothing_is_lost(stack, &sink, &["meanwhile".to_owned()]).await;
}
