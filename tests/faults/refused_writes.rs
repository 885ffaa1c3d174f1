//! A master of a Redis Cluster that accepts no writes because it cannot save (MISCONF): only its shards are refused.

use ringback_testkit::{RedisServer, Role};

use super::redis_outage::{accepted_again, still_the_same_processes};
use super::refusals::is_accepted;
use super::weaker_store::unready;
use crate::prelude::*;

/// How long it may take until everything works again.
const RECOVERY: Duration = Duration::from_secs(60);
/// How many jobs are submitted while the master takes no writes.
const JOBS: usize = 30;

/// Starts snapshots of a node until the last one ends with the status `end`.
async fn save(node: &RedisServer, end: &str) {
    let mut client = node.client().await;
    eventually(RECOVERY, "a snapshot ends", async || {
        redis::cmd("BGSAVE").exec_async(&mut client).await.ok();
        let status = node.info_field("persistence", "rdb_last_bgsave_status").await;
        if status == end { Ok(()) } else { Err(status) }
    })
    .await;
}

#[tokio::test]
async fn a_master_of_a_cluster_that_takes_no_writes_is_named_and_its_shards_alone_are_refused() {
    let options = Stack::options().cluster(RedisServer::options()).env("RINGBACK_SHARDS", "6");
    let (mut stack, sink) = (options.count(Role::Carrier, 2).start().await, Sink::start().await);
    let before: Vec<String> = (0..JOBS).map(|n| format!("before-{n}")).collect();
    for id in &before {
        stack.accept(&with(job(&sink, id), "delay", "2s")).await;
    }
    // A node without the installation's row.
    let slot = stack.cluster_mut().slot_of("{meta}").await;
    let row = stack.cluster_mut().master_of(slot).await;
    let node = &stack.cluster_mut().nodes()[(row + 1) % 3];
    let (port, snapshot) = (node.port(), node.directory().join("dump.rdb"));
    std::fs::create_dir(&snapshot).expect("a directory where the snapshot should be");
    let mut config = redis::cmd("CONFIG");
    config
        .arg("SET")
        .arg("save")
        .arg("3600 1")
        .exec_async(&mut node.client().await)
        .await
        .expect("CONFIG SET");
    save(node, "err").await;

    for process in stack.processes() {
        unready(process, &port.to_string()).await;
        unready(process, "MISCONF").await;
    }
    // The message is not logged again and again.
    let unavailable = stack.apis[0].log().matches("the store is unavailable").count();
    assert!((1..=2).contains(&unavailable), "{}", stack.apis[0].log());
    let (mut accepted, mut refused) = (Vec::new(), Vec::new());
    for n in 0..JOBS {
        let id = format!("meanwhile-{n}");
        let is_accepted = is_accepted(&stack, &job(&sink, &id), "the store cannot be reached").await;
        if is_accepted { accepted.push(id) } else { refused.push(id) }
    }
    assert!(accepted.len() > refused.len() && !refused.is_empty(), "{accepted:?} {refused:?}");
    sink.wait_for_jobs(&accepted, 1, RECOVERY).await;

    std::fs::remove_dir(&snapshot).expect("an empty directory");
    save(&stack.cluster_mut().nodes()[(row + 1) % 3], "ok").await;
    stack.ready(RECOVERY).await;
    for id in &refused {
        accepted_again(&stack, &job(&sink, id)).await;
    }
    let all: Vec<_> = [before, refused].concat();
    sink.wait_for_jobs(&all, 1, RECOVERY).await;
    still_the_same_processes(&mut stack);
}
