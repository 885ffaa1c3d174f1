//! A replica of Redis that takes over without all acknowledged jobs, and a master of a cluster that comes back empty:
//! each loss is noticed.

use ringback_testkit::{Persistence, RedisServer};

use super::lost_data::accept;
use super::redis_outage::{accepted_again, still_the_same_processes};
use super::replicated::start;
use crate::prelude::*;

/// How long it may take until everything works again.
const RECOVERY: Duration = Duration::from_secs(60);

/// Waits until a loss is noticed, accepts it, and returns how many jobs are lost.
async fn loss(stack: &Stack, sink: &Sink) -> u64 {
    let refused = job(sink, "refused");
    eventually(RECOVERY, "the loss is noticed", async || match stack.submit(&refused).await {
        (503, problem) if problem["detail"].as_str().is_some_and(|detail| detail.contains("has lost")) => {
            Ok(())
        }
        (status, answer) => Err(format!("{status} {answer}")),
    })
    .await;
    let loss = stack.check().await.loss.expect("a loss");
    stack.post("/v1/check/accept-loss", &json!({"run_id": loss.run_id})).await.expect(200);
    loss.jobs
}

#[tokio::test]
async fn a_replica_that_lags_for_long_and_takes_over_is_a_loss() {
    let (mut master, replica, proxy, mut stack, sink) = start("disk").await;
    accept(&stack, &sink, "kept", 10).await;
    eventually(SOON, "the replica has all", async || {
        let offset = async |server: &RedisServer, field: &str| server.info_field("replication", field).await;
        let all = offset(&master, "master_repl_offset").await;
        let have = offset(&replica, "slave_repl_offset").await;
        if all == have { Ok(()) } else { Err(format!("{have} of {all}")) }
    })
    .await;
    replica.promote().await;
    accept(&stack, &sink, "lost", 20).await;
    // After this, earlier jobs no longer count as accepted recently.
    stack.accept(&with(job(&sink, "later"), "delay", "8s")).await;
    sink.wait_for_job("later", 1, SOON).await;

    master.kill();
    proxy.lead_to(replica.port());
    assert_eq!(loss(&stack, &sink).await, 21);
    accepted_again(&stack, &job(&sink, "after")).await;
    sink.wait_for_job("after", 1, SOON).await;
    assert_eq!(stack.job(TOPIC, "kept-0").await.0, 200);
    assert_eq!(stack.job(TOPIC, "lost-0").await.0, 404);
    stack.ready(RECOVERY).await;
    still_the_same_processes(&mut stack);
}

#[tokio::test]
async fn a_replica_that_misses_only_the_last_moment_takes_over_without_anybodys_help() {
    let (mut master, replica, proxy, mut stack, sink) = start("disk").await;
    accept(&stack, &sink, "kept", 10).await;
    replica.promote().await;
    accept(&stack, &sink, "lost", 12).await;
    master.kill();
    proxy.lead_to(replica.port());
    // Calls to all shards notice their losses at the same time.
    let after: Vec<_> = (0..40).map(|n| job(&sink, &format!("after-{n}"))).collect();
    eventually(RECOVERY, "submits are accepted again", async || match stack.batch(&after).await {
        (_, answer) if answer["accepted"] == 40 => Ok(()),
        (status, answer) => Err(format!("{status} {answer}")),
    })
    .await;
    sink.wait_for_job("after-0", 1, SOON).await;
    stack.ready(RECOVERY).await;
    assert!(stack.check().await.loss.is_none());
    assert!(stack.apis[0].log().contains("the store has lost accepted jobs of a shard"));
    still_the_same_processes(&mut stack);
}

#[tokio::test]
async fn a_master_of_a_cluster_that_comes_back_empty_is_a_loss() {
    const COUNT: usize = 60;
    let nodes = RedisServer::options().persistence(Persistence::Always);
    let options = Stack::options().cluster(nodes).env("RINGBACK_SHARDS", "6");
    let (mut stack, sink) = (options.start().await, Sink::start().await);
    accept(&stack, &sink, "job", COUNT).await;
    stack.cluster_mut().node_mut(1).restart_empty().await;
    let jobs = loss(&stack, &sink).await;
    accepted_again(&stack, &job(&sink, "after")).await;
    let mut lost = 0;
    for n in 0..COUNT {
        lost += u64::from(stack.job(TOPIC, &format!("job-{n}")).await.0 == 404);
    }
    assert!(lost > 0 && jobs == lost, "{jobs} of {lost}");
    stack.ready(RECOVERY).await;
    still_the_same_processes(&mut stack);
}
