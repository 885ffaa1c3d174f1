//! `RINGBACK_DURABILITY=replicated` on a master with a replica: acknowledged jobs are on the replica; a submit that no
//! replica confirms is answered 503.

mod cluster;
mod partition;
mod sentinel;

use ringback_testkit::{Persistence, Proxy, RedisServer};
use tokio::task::JoinSet;

use super::redis_outage::{accepted_again, still_the_same_processes};
use super::weaker_store::unready;
use crate::prelude::*;
use crate::raw_post::{JSON, raw_post};
use crate::sample_jobs::without;

/// How long it may take until everything works again.
const RECOVERY: Duration = Duration::from_secs(60);

/// A server that syncs each change to disk.
pub(super) async fn server() -> RedisServer {
    RedisServer::options().persistence(Persistence::Always).copies_at_once().start().await
}

/// A master with a replica, a proxy in front of the master, a stack over the proxy, and a receiver.
pub(super) async fn start(durability: &str) -> (RedisServer, RedisServer, Proxy, Stack, Sink) {
    let (master, replica) = (server().await, server().await);
    replica.follow(&master).await;
    let proxy = Proxy::start(master.port());
    let url = format!("redis://127.0.0.1:{}", proxy.port());
    let stack = Stack::options().store(&url).env("RINGBACK_DURABILITY", durability).start().await;
    (master, replica, proxy, stack, Sink::start().await)
}

fn is_unknown(problem: &Value) -> bool {
    problem["detail"]
        .as_str()
        .is_some_and(|detail| detail.contains("too few replicas of the store have confirmed"))
}

#[tokio::test]
async fn what_no_replica_confirms_is_answered_with_503_and_can_be_repeated() {
    let (_master, mut replica, _proxy, mut stack, sink) = start("replicated").await;
    stack.accept(&with(job(&sink, "pending"), "delay", "4s")).await;
    stack.accept(&with(job(&sink, "cancelled"), "delay", "1h")).await;
    stack.accept(&json!({"topic": "pull", "id": "finished"})).await;
    let reserved = stack.reserve_one("pull", &json!({})).await;

    replica.stop();
    let unnamed = with(without(job(&sink, "unnamed"), "id"), "delay", "1h");
    let (path, nothing) = (format!("/v1/jobs/{TOPIC}/cancelled"), json!({}));
    let (submitted, cancelled, finished) = tokio::join!(
        stack.post("/v1/jobs", &unnamed),
        stack.delete(&path),
        stack.settle(&reserved, "finish", &nothing),
    );
    for reply in [&submitted, &cancelled, &finished] {
        assert!(reply.status == 503 && is_unknown(&reply.json()), "{reply:?}");
        assert!(reply.header("retry-after").is_some(), "{reply:?}");
    }
    let (problem, other) = (submitted.json(), cancelled.json());
    assert_eq!((&other["topic"], &other["id"]), (&json!(TOPIC), &json!("cancelled")));
    let id = problem["id"].as_str().expect("the id that was made");

    // Soon it is known that too few replicas keep up: then nothing is written first.
    unready(&stack.apis[0], "too few replicas keep up").await;
    let (status, refused) = stack.submit(&job(&sink, "refused")).await;
    assert!(status == 503 && refused.get("id").is_none(), "{refused}");
    sink.wait_for_job("pending", 1, SOON).await;

    replica.cont();
    stack.ready(RECOVERY).await;
    let repeated = with(unnamed, "id", id);
    assert_eq!(stack.submit(&repeated).await.0, 200);
    assert_eq!(stack.cancel(TOPIC, "cancelled").await.0, 200);
    assert_eq!(stack.settle(&reserved, "finish", &json!({})).await.status, 200);
    assert_eq!(stack.stats().await["states"]["delayed"], 1);
    assert_eq!(stack.job(TOPIC, "refused").await.0, 404);
    still_the_same_processes(&mut stack);
}

#[tokio::test]
async fn jobs_that_no_replica_had_are_no_loss_when_a_replica_takes_over() {
    let (mut master, mut replica, proxy, mut stack, sink) = start("replicated").await;
    let far = |id: &str| with(job(&sink, id), "delay", "1h");
    for n in 0..40 {
        stack.accept(&far(&format!("kept-{n}"))).await;
    }
    replica.stop();
    let unnamed = without(far(""), "id");
    let batch = stack.post("/v1/jobs/batch", &json!(vec![&unnamed; 40])).await;
    assert_eq!(batch.status, 503, "{batch:?}");
    let unknown = batch.json()["jobs"].as_array().cloned().unwrap_or_default();
    assert!(!unknown.is_empty() && unknown.iter().all(|job| job["topic"] == TOPIC), "{batch:?}");
    // The API has checked a shard again since.
    unready(&stack.apis[0], "too few replicas keep up").await;

    master.kill();
    // Changes that were on their way to the replica are gone with it.
    replica.kill();
    replica.restart().await;
    proxy.lead_to(replica.port());
    let second = server().await;
    second.follow(&replica).await;
    let after = far("after");
    accepted_again(&stack, &after).await;
    stack.ready(RECOVERY).await;
    for n in 0..40 {
        assert_eq!(stack.job(TOPIC, &format!("kept-{n}")).await.0, 200);
    }
    for job in &unknown {
        let id = job["id"].as_str().expect("the id that was made");
        assert_eq!(stack.submit(&with(unnamed.clone(), "id", id)).await.0, 201, "{id}");
        assert_eq!(stack.submit(&with(unnamed.clone(), "id", id)).await.0, 200, "{id}");
    }
    let check = stack.check().await;
    assert!(check.clean && check.loss.is_none(), "{check:?}");
    assert!(!stack.apis[0].log().contains("has lost accepted jobs"), "{}", stack.apis[0].log());
    still_the_same_processes(&mut stack);
}

/// Submits jobs until a 503 comes. Returns the ids that were accepted.
fn submit_on(stack: &Stack, sink: &Sink, client: usize) -> impl Future<Output = Vec<String>> + use<> {
    let (url, sample) = (stack.url("/v1/jobs"), with(job(sink, ""), "delay", "1h"));
    async move {
        let mut accepted = Vec::new();
        for n in 0.. {
            let id = format!("load-{client}-{n}");
            let job = with(sample.clone(), "id", id.as_str());
            match raw_post(url.clone(), &[JSON], job.to_string()).await.status {
                201 => accepted.push(id),
                503 => break,
                status => panic!("{status}"),
            }
        }
        accepted
    }
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_when_the_master_is_killed_and_its_replica_takes_over() {
    let (mut master, replica, proxy, mut stack, sink) = start("replicated").await;
    stack.accept(&with(job(&sink, "due"), "delay", "2s")).await;
    let mut clients: JoinSet<_> = (0..16).map(|client| submit_on(&stack, &sink, client)).collect();
    eventually(SOON, "jobs are accepted", async || match stack.stats().await["states"]["delayed"].as_u64() {
        Some(200..) => Ok(()),
        count => Err(format!("{count:?}")),
    })
    .await;
    master.kill();
    replica.promote().await;
    proxy.lead_to(replica.port());
    let mut ids = Vec::new();
    while let Some(accepted) = clients.join_next().await {
        ids.extend(accepted.expect("a client ends"));
    }
    assert!(ids.len() >= 100, "{}", ids.len());

    // The promoted replica has no replica of its own yet.
    unready(&stack.apis[0], "too few replicas keep up").await;
    sink.wait_for_job("due", 1, RECOVERY).await;
    let second = server().await;
    second.follow(&replica).await;
    accepted_again(&stack, &job(&sink, "after")).await;
    for id in &ids {
        assert_eq!(stack.job(TOPIC, id).await.0, 200, "{id} of {} is lost", ids.len());
    }
    let check = stack.check().await;
    assert!(check.clean && check.loss.is_none(), "{check:?}");
    stack.ready(RECOVERY).await;
    still_the_same_processes(&mut stack);
}
