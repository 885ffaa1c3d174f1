//! Masters of a Redis Cluster that new nodes replace under load, and a shard that has no master for a while.

use ringback_testkit::{Persistence, RedisOptions, RedisServer, Role};
use tokio::time::sleep;

use super::redis_outage::{accepted, nothing_is_lost};
use super::runs_all_topologies;
use super::steady_load::SteadyLoad;
use crate::prelude::*;

/// How long it may take until everything works again.
const RECOVERY: Duration = Duration::from_secs(60);
/// How many jobs are accepted before something goes wrong, and afterwards.
const JOBS: usize = 40;
/// How long a shard has no master.
const AWAY: Duration = Duration::from_secs(30);

fn node() -> RedisOptions {
    let node = RedisServer::options().persistence(Persistence::Always);
    node.arg("--cluster-node-timeout", "1000").arg("--cluster-require-full-coverage", "no")
}

async fn start(durability: &str) -> (Stack, Sink) {
    let options = Stack::options().cluster_with_replicas(node()).env("RINGBACK_SHARDS", "6");
    let options = options.env("RINGBACK_DURABILITY", durability).count(Role::Carrier, 2);
    (options.start().await, Sink::counting().await)
}

#[tokio::test]
async fn new_nodes_that_take_over_from_masters_which_are_forgotten_are_found() {
    if !runs_all_topologies() {
        return;
    }
    let (mut stack, sink) = start("replicated").await;
    let load = SteadyLoad::start(&stack, &sink, "load");
    load.more(JOBS).await;
    for master in [0, 1] {
        let new = stack.cluster_mut().add_replica(node(), master).await;
        let cluster = stack.cluster_mut();
        eventually(RECOVERY, "the new node is a master", async || {
            // The new node gets no votes before all masters know it.
            let mut fail_over = redis::cmd("CLUSTER");
            let fail_over = fail_over.arg("FAILOVER");
            fail_over.exec_async(&mut cluster.nodes()[new].client().await).await.ok();
            if cluster.nodes()[new].is_master().await { Ok(()) } else { Err("it is a replica") }
        })
        .await;
        load.more(JOBS).await;
        let others: Vec<_> = (master + 1..=new).collect();
        stack.cluster_mut().forget(master, &others).await;
        stack.cluster_mut().node_mut(master).kill();
        load.more(JOBS).await;
    }
    // These processes start with a URL whose first nodes are gone.
    stack.carriers[0].restart();
    stack.add(Role::Api).await;
    load.more(JOBS).await;
    nothing_is_lost(stack, &sink, &load.end().await).await;
}

#[tokio::test]
async fn a_shard_without_a_master_for_long_is_refused_alone_and_goes_on_by_itself() {
    if !runs_all_topologies() {
        return;
    }
    let (mut stack, sink) = start("disk").await;
    let load = SteadyLoad::start(&stack, &sink, "load");
    load.more(JOBS).await;
    let pair = [0, 3];
    for node in pair {
        stack.cluster_mut().node_mut(node).kill();
    }
    sleep(AWAY).await;
    let mut taken = Vec::new();
    for n in 0..JOBS {
        let id = format!("meanwhile-{n}");
        if accepted(&stack, &job(&sink, &id)).await.is_ok() {
            taken.push(id);
        }
    }
    assert!(taken.len() > JOBS / 4 && taken.len() < JOBS, "{} of {JOBS} are accepted", taken.len());
    sink.wait_for_jobs(&taken, 1, RECOVERY).await;
    for node in pair {
        stack.cluster_mut().node_mut(node).restart().await;
    }
    load.more(JOBS).await;
    nothing_is_lost(stack, &sink, &[load.end().await, taken].concat()).await;
}
