//! The slot of a shard or of the installation moves between masters of a Redis Cluster, key by key or as a whole,
//! while jobs are submitted and delivered: no job is lost.

use redis::FromRedisValue;
use ringback_testkit::{RedisServer, Role, http_client};
use tokio::time::sleep;

use super::redis_outage::still_the_same_processes;
use super::show_left_out;
use super::steady_load::SteadyLoad;
use crate::prelude::*;

/// The limit until everything works again; leases and locks expire before that.
const RECOVERY: Duration = Duration::from_secs(60);
/// How long a key waits for the next one.
const BETWEEN_KEYS: Duration = Duration::from_millis(40);
const SHARDS: usize = 6;

/// A stack on a cluster, a receiver, and the ids of 60 jobs in all shards that become due over 6 seconds.
async fn start() -> (Stack, Sink, Vec<String>) {
    let options = Stack::options().cluster(RedisServer::options()).count(Role::Carrier, 2);
    let options = options.count(Role::Notifier, 2).env("RINGBACK_SHARDS", &SHARDS.to_string());
    let (stack, sink) = (options.start().await, Sink::start().await);
    // Bodies of this size have keys of their own.
    let body = noise(b'x', 100_000);
    let ids: Vec<String> = (0..60).map(|n| format!("before-{n}")).collect();
    let due = |n: usize| format!("{}ms", 500 + n * 100);
    let jobs: Vec<Value> = ids
        .iter()
        .enumerate()
        .map(|(n, id)| with(with(job(&sink, id), "delay", due(n)), "body", body.as_str()))
        .collect();
    let (status, answer) = stack.batch(&jobs).await;
    assert_eq!((status, &answer["accepted"]), (200, &Value::from(ids.len())), "{answer}");
    (stack, sink, ids)
}

/// The sorted hash tags of the keys on all nodes.
async fn tags(stack: &mut Stack) -> Vec<String> {
    let mut tags = Vec::new();
    for node in stack.cluster_mut().nodes() {
        let keys: Vec<Vec<u8>> = ask(node, &["KEYS", "ringback:*"]).await;
        let tag = |key: &Vec<u8>| {
            let key = String::from_utf8_lossy(key).into_owned();
            Some(key.split_once('{')?.1.split_once('}')?.0.to_owned())
        };
        tags.extend(keys.iter().filter_map(tag));
    }
    tags.sort_unstable();
    tags.dedup();
    tags
}

async fn ask<T: FromRedisValue>(node: &RedisServer, words: &[&str]) -> T {
    let mut command = redis::cmd(words[0]);
    command.arg(&words[1..]).query_async(&mut node.client().await).await.expect("the node answers")
}

/// Waits until `/readyz` has a status and text that `is_so` accepts, and returns the text.
async fn readiness(admin: std::net::SocketAddr, what: &str, is_so: impl Fn(u16, &str) -> bool) -> String {
    let url = format!("http://{admin}/readyz");
    eventually(RECOVERY, what, async || {
        let answer = http_client().get(&url).send().await.map_err(|e| e.to_string())?;
        let (status, text) = (answer.status().as_u16(), answer.text().await.unwrap_or_default());
        if is_so(status, &text) { Ok(text) } else { Err(format!("{status} {text}")) }
    })
    .await
}

const REFUSED: &str = "refused while";

#[tokio::test]
async fn a_shard_whose_slot_moves_key_by_key_under_load_is_refused_until_it_is_whole_and_nothing_is_lost() {
    let (mut stack, sink, mut ids) = start().await;
    let load = SteadyLoad::start(&stack, &sink, "load");
    load.more(100).await;
    let mut tags = tags(&mut stack).await;
    tags.retain(|tag| tag != "meta");
    assert_eq!(tags.len(), SHARDS, "{tags:?}");
    for tag in tags.iter().step_by(3) {
        let slot = stack.cluster_mut().slot_of(&format!("{{{tag}}}")).await;
        let from = stack.cluster_mut().master_of(slot).await;
        let mut moving = stack.cluster_mut().begin_move(slot, from, (from + 1) % 3).await;
        let admin = stack.apis[0].admin();
        let text =
            readiness(admin, "the API says so", |status, text| status == 200 && text.contains(REFUSED)).await;
        assert_eq!(text.matches("shards ").count(), 1, "{text}");
        // A connection to a node may be new, so that one call cannot say more than that the store is away.
        eventually(RECOVERY, "the statistics say so too", async || {
            let stats = stack.get("/v1/stats").await;
            assert_eq!(stats.status, 503, "{:?}", stats.body);
            let detail = stats.json()["detail"].to_string();
            if detail.contains("shard ") && detail.contains(REFUSED) { Ok(()) } else { Err(detail) }
        })
        .await;
        // Processes that start during the move behave like the others.
        stack.notifiers[0].restart();
        stack.carriers[0].restart();
        while moving.keys(1).await > 0 {
            sleep(BETWEEN_KEYS).await;
        }
        moving.end().await;
        readiness(admin, "the shard is served again", |status, text| {
            status == 200 && !text.contains(REFUSED)
        })
        .await;
    }
    ids.extend(load.end().await);
    assert!(ids.len() > 200, "{} jobs are not a load", ids.len());
    sink.wait_for_jobs(&ids, 1, RECOVERY).await;
    for arrival in sink.arrivals() {
        assert!(arrival.due_at().is_some_and(|due| arrival.at >= due), "{} is early", arrival.job_id());
    }
    for state in ["delayed", "ready", "reserved"] {
        stack.wait_count(state, 0, RECOVERY).await;
    }
    stack.ready(RECOVERY).await;
    still_the_same_processes(&mut stack);
}

#[tokio::test]
async fn while_the_slot_of_the_installation_moves_no_process_is_ready_and_afterwards_all_go_on() {
    let (mut stack, sink, ids) = start().await;
    let slot = stack.cluster_mut().slot_of("{meta}").await;
    let from = stack.cluster_mut().master_of(slot).await;
    let mut moving = stack.cluster_mut().begin_move(slot, from, (from + 1) % 3).await;
    let admin = stack.apis[0].admin();
    readiness(admin, "the API is not ready", |status, text| {
        status == 503 && text.contains("the installation's row") && text.contains(REFUSED)
    })
    .await;
    while moving.keys(1).await > 0 {
        sleep(BETWEEN_KEYS).await;
    }
    moving.end().await;
    stack.ready(RECOVERY).await;
    sink.wait_for_jobs(&ids, 1, RECOVERY).await;
    eventually(SOON, "a job is accepted", async || {
        super::redis_outage::accepted(&stack, &job(&sink, "after")).await
    })
    .await;
    sink.wait_for_job("after", 1, RECOVERY).await;
    still_the_same_processes(&mut stack);
}

/// Valkey 9 moves all keys of a slot at once. With other servers the test is left out.
#[tokio::test]
async fn a_shard_whose_slot_moves_as_a_whole_under_load_goes_on() {
    let server = RedisServer::start().await;
    let known: Vec<Option<redis::Value>> = ask(&server, &["COMMAND", "INFO", "cluster|migrateslots"]).await;
    if known == [None] {
        show_left_out("the server has no CLUSTER MIGRATESLOTS");
        return;
    }
    let (mut stack, sink, mut ids) = start().await;
    let load = SteadyLoad::start(&stack, &sink, "load");
    load.more(100).await;
    for tag in tags(&mut stack).await {
        let slot = stack.cluster_mut().slot_of(&format!("{{{tag}}}")).await;
        let from = stack.cluster_mut().master_of(slot).await;
        let to = (from + 1) % 3;
        let id: String = ask(&stack.cluster_mut().nodes()[to], &["CLUSTER", "MYID"]).await;
        let slot_text = slot.to_string();
        let command = ["CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", &slot_text, &slot_text, "NODE", &id];
        let _: String = ask(&stack.cluster_mut().nodes()[from], &command).await;
        eventually(RECOVERY, "the slot has moved", async || {
            let master = stack.cluster_mut().master_of(slot).await;
            if master == to { Ok(()) } else { Err(master) }
        })
        .await;
    }
    ids.extend(load.end().await);
    assert!(ids.len() > 200, "{} jobs are not a load", ids.len());
    sink.wait_for_jobs(&ids, 1, RECOVERY).await;
    for state in ["delayed", "ready", "reserved"] {
        stack.wait_count(state, 0, RECOVERY).await;
    }
    still_the_same_processes(&mut stack);
}
