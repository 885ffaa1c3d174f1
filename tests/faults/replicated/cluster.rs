//! `RINGBACK_DURABILITY=replicated` on a Redis Cluster: a replica that lags takes over, and a slot moves.

use ringback_testkit::{Persistence, RedisServer, Role};

use super::super::redis_outage::still_the_same_processes;
use super::super::runs_all_topologies;
use super::super::weaker_store::unready;
use super::RECOVERY;
use crate::prelude::*;

/// The number of jobs: some in each shard.
const JOBS: usize = 400;

fn options(shards: &str) -> StackOptions {
    let nodes = RedisServer::options().persistence(Persistence::Always).arg("--cluster-node-timeout", "1000");
    let options = Stack::options().cluster_with_replicas(nodes).env("RINGBACK_SHARDS", shards);
    options.env("RINGBACK_DURABILITY", "replicated").count(Role::Carrier, 0).count(Role::Notifier, 0)
}

fn jobs(name: &str) -> Vec<Value> {
    (0..JOBS).map(|n| json!({"topic": TOPIC, "id": format!("{name}-{n}"), "delay": "1h"})).collect()
}

/// Submits the jobs again until all are accepted, in whatever shard they are.
async fn all_accepted(stack: &Stack, jobs: &[Value]) {
    eventually(RECOVERY, "all shards take jobs", async || {
        let (status, answer) = stack.batch(jobs).await;
        let accepted = answer["accepted"].as_u64();
        if accepted == Some(JOBS as u64) { Ok(()) } else { Err(format!("{status} {accepted:?}")) }
    })
    .await;
}

/// Each shard is refused until the process knows its new master.
#[tokio::test]
async fn all_shards_of_a_master_whose_replica_lagged_and_took_over_take_jobs_again() {
    if !runs_all_topologies() {
        return;
    }
    let mut stack = options("240").start().await;
    all_accepted(&stack, &jobs("before")).await;
    stack.cluster_mut().node_mut(3).stop();
    unready(&stack.apis[0], "too few replicas keep up").await;
    stack.cluster_mut().node_mut(0).kill();
    stack.cluster_mut().node_mut(3).cont();
    stack.cluster_mut().nodes()[3].becomes_master().await;
    stack.cluster_mut().node_mut(0).restart().await;
    all_accepted(&stack, &jobs("after")).await;
    stack.ready(RECOVERY).await;
    assert_eq!(stack.stats().await["states"]["delayed"], 2 * JOBS);
    assert!(stack.check().await.loss.is_none());
    still_the_same_processes(&mut stack);
}

/// A call that replicas must confirm does not follow ASK: it is refused before it does anything.
#[tokio::test]
async fn a_shard_whose_slot_moves_is_refused_with_its_name_and_the_process_stays_ready() {
    let mut stack = options("6").start().await;
    all_accepted(&stack, &jobs("before")).await;
    let mut client = stack.cluster_mut().nodes()[0].client().await;
    let keys: Vec<String> =
        redis::cmd("KEYS").arg("ringback:*").query_async(&mut client).await.expect("KEYS");
    let key = keys.into_iter().find(|key| !key.contains("{meta}")).expect("a shard on the first master");
    let slot = stack.cluster_mut().slot_of(&key).await;
    let mut moving = stack.cluster_mut().begin_move(slot, 0, 1).await;
    let during = jobs("during");
    loop {
        let mut refused = 0;
        for job in &during[..20] {
            match stack.submit(job).await {
                (200 | 201, _) => {}
                (503, problem) => {
                    let detail = problem["detail"].to_string();
                    assert!(detail.contains("refused while its slot moves"), "{detail}");
                    assert!(detail.contains("was not accepted"), "{detail}");
                    refused += 1;
                }
                (status, answer) => panic!("{status} {answer}"),
            }
        }
        assert!((1..20).contains(&refused), "{refused} of 20 are refused");
        stack.ready(RECOVERY).await;
        if moving.keys(1).await == 0 {
            break;
        }
    }
    moving.end().await;
    all_accepted(&stack, &during).await;
    assert_eq!(stack.stats().await["states"]["delayed"], 2 * JOBS);
    still_the_same_processes(&mut stack);
}
