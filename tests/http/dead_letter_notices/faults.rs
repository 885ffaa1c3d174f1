//! Dead-letter notices while carriers are killed or without policies, the store is full, topics are at their limit, or
//! an entry cannot be read.

use super::{NOTICES, assert_reports, body, doomed, notices, outbox_is_empty, wait_pending};
use crate::prelude::*;
use crate::redis_layout::keys;
use ringback_testkit::{Role, add_to_shard_field};
use std::collections::BTreeSet;

#[tokio::test]
async fn carriers_killed_while_they_submit_notices_leave_out_none() {
    let options = Stack::options().count(Role::Carrier, 2).lock_ttl("500ms");
    let (mut stack, sink) = (options.start().await, Sink::start().await);
    sink.answer(Answer::status(410));
    sink.answer_path("/dead", Answer::status(200));
    let jobs: Vec<Value> =
        (0..600).map(|n| with(doomed(&sink, &format!("job-{n}")), "delay", format!("{}ms", n * 4))).collect();
    assert_eq!(stack.batch(&jobs).await.1["accepted"], 600);
    for round in 0..6 {
        notices(&sink, "/dead", 80 * (round + 1)).await;
        let victim = &mut stack.carriers[round % 2];
        victim.restart();
        victim.ready(SOON).await;
    }
    let received = notices(&sink, "/dead", 600).await;
    let ids: BTreeSet<String> =
        received.iter().map(|notice| body(notice)["data"]["id"].to_string()).collect();
    assert_eq!(ids.len(), 600);
    outbox_is_empty(&stack).await;
    // A notifier may deliver a notice twice; a carrier that died submits no second one.
    let names: BTreeSet<_> =
        received.iter().map(|notice| notice.header("webhook-id").expect("a name").to_owned()).collect();
    assert_eq!(names.len(), 600);
}

#[tokio::test]
async fn a_full_store_keeps_pending_notices_until_there_is_room() {
    let (mut stack, sink) = (Stack::start().await, Sink::start().await);
    sink.answer(Answer::status(410));
    sink.answer_path("/dead", Answer::status(200));
    stack.accept(&with(doomed(&sink, "a"), "delay", "1s")).await;
    stack.redis().limit_memory(1_000_000).await;
    let dead = stack.wait_state(TOPIC, "a", "dead", SOON).await;
    let carrier = &stack.carriers[0];
    eventually(SOON, "the carrier counts the rejected notices", async || {
        let count = carrier.metric("ringback_carrier_rejected_dead_letter_notices_total").await;
        if count > Some(0.0) { Ok(()) } else { Err(format!("{count:?}")) }
    })
    .await;
    wait_pending(&stack, 1).await;
    stack.redis().limit_memory(0).await;
    assert_reports(&notices(&sink, "/dead", 1).await[0], &dead);
    outbox_is_empty(&stack).await;
    assert!(stack.carriers[0].log().contains("notices are rejected"), "it is logged");
    stack.ready(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn an_entry_that_cannot_be_read_is_taken_out_and_keeps_nobody_waiting() {
    let (mut stack, sink) = (Stack::start().await, Sink::start().await);
    sink.answer(Answer::status(410));
    sink.answer_path("/dead", Answer::status(200));
    stack.carriers[0].kill();
    for id in ["a", "b"] {
        stack.accept(&doomed(&sink, id)).await;
        stack.wait_state(TOPIC, id, "dead", SOON).await;
    }
    wait_pending(&stack, 2).await;
    let mut client = stack.redis().client().await;
    let keys: Vec<String> = keys::all(&mut client, "outbox").await;
    let mut torn = 0;
    for key in &keys {
        let entries: Vec<Vec<u8>> =
            redis::cmd("ZRANGE").arg(key).arg(&[0, -1]).query_async(&mut client).await.expect("ZRANGE");
        // Beginnings of an entry, of all lengths, and what was never one.
        for end in (0..entries[0].len().min(130)).step_by(10) {
            let torn_entry = [&entries[0][..end], b"?".as_slice()].concat();
            redis::cmd("ZADD").arg(key).arg(1).arg(torn_entry).exec_async(&mut client).await.expect("ZADD");
            torn += 1;
        }
    }
    wait_pending(&stack, 2 + torn).await;
    stack.add(Role::Carrier).await;
    let received = notices(&sink, "/dead", 2).await;
    let mut ids: Vec<_> = received.iter().map(|notice| body(notice)["data"]["id"].to_string()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["\"a\"", "\"b\""]);
    outbox_is_empty(&stack).await;
    let unreadable = stack.carriers[1].metric("ringback_carrier_outbox_unreadable_total").await;
    assert_eq!(unreadable, Some(torn as f64));
}

#[tokio::test]
async fn one_process_killed_while_it_submits_notices_leaves_out_none() {
    let options = Stack::options().in_one_process().store("embedded:./data");
    let (mut stack, sink) = (options.start().await, Sink::start().await);
    sink.answer(Answer::status(410));
    sink.answer_path("/dead", Answer::status(200));
    // Jobs that were in flight when it was killed are delivered again soon.
    stack.set_policy(NOTICES, &json!({"timeout": "500ms"})).await;
    let jobs: Vec<Value> = (0..300)
        .map(|n| {
            let due = with(doomed(&sink, &format!("job-{n}")), "delay", format!("{}ms", n * 8));
            with(due, "timeout", "500ms")
        })
        .collect();
    assert_eq!(stack.batch(&jobs).await.1["accepted"], 300);
    for round in 1..4 {
        notices(&sink, "/dead", 60 * round).await;
        stack.ups[0].restart();
        stack.ups[0].ready(SOON).await;
    }
    let ids = eventually(SOON, "every death has a notice", async || {
        let received = notices(&sink, "/dead", 300).await;
        let ids: BTreeSet<String> =
            received.iter().map(|notice| body(notice)["data"]["id"].to_string()).collect();
        if ids.len() == 300 { Ok(received) } else { Err(ids.len()) }
    })
    .await;
    let names: BTreeSet<_> =
        ids.iter().map(|notice| notice.header("webhook-id").map(str::to_owned)).collect();
    assert_eq!(names.len(), 300, "a process that died makes no second notice");
    outbox_is_empty(&stack).await;
}

#[tokio::test]
async fn a_notice_beyond_the_limit_of_topics_waits_until_a_topic_is_free() {
    let (mut stack, sink) = (Stack::start().await, Sink::start().await);
    sink.answer(Answer::status(410));
    sink.answer_path("/dead", Answer::status(200));
    let mut client = stack.redis().client().await;
    let shards = eventually(SOON, "every shard is held", async || {
        let keys: Vec<String> = keys::all(&mut client.clone(), "shard").await;
        if keys.len() == 4 { Ok(keys) } else { Err(keys.len()) }
    })
    .await;
    stack.carriers[0].kill();
    stack.accept(&doomed(&sink, "a")).await;
    let dead = stack.wait_state(TOPIC, "a", "dead", SOON).await;
    let mut more_topics = async |by: i64| {
        for shard in &shards {
            add_to_shard_field(&mut client, shard, "topics", by).await;
        }
    };
    more_topics(10_000).await;
    let carrier = stack.add(Role::Carrier).await;
    eventually(SOON, "the notice was refused", async || {
        let count = carrier.metric("ringback_carrier_rejected_dead_letter_notices_total").await;
        count.map(drop).ok_or("it was not")
    })
    .await;
    more_topics(-10_000).await;
    assert_reports(&notices(&sink, "/dead", 1).await[0], &dead);
    outbox_is_empty(&stack).await;
}

#[tokio::test]
async fn a_carrier_that_has_no_policies_yet_submits_no_notices() {
    let options = Stack::options().count(Role::Carrier, 0);
    let (mut stack, sink) = (options.start().await, Sink::start().await);
    sink.answer(Answer::status(410));
    sink.answer_path("/topic", Answer::status(200));
    stack.set_policy(TOPIC, &json!({"on_dead": sink.url("/topic")})).await;
    let mut redis = stack.redis().client().await;
    let (key, aside) = ("ringback:{meta}:policies", "ringback:{meta}:aside");
    let mut run = async |words: [&str; 3]| {
        redis::cmd(words[0]).arg(&words[1..]).exec_async(&mut redis).await.expect("redis answers");
    };
    let mut bare = doomed(&sink, "a");
    bare.as_object_mut().expect("a job").remove("on_dead");
    stack.accept(&bare).await;
    let dead = stack.wait_state(TOPIC, "a", "dead", SOON).await;
    run(["RENAME", key, aside]).await;
    run(["SET", key, "no hash"]).await;
    stack.carriers.push(stack.spec(Role::Carrier).start());
    eventually(SOON, "the carrier has the shards and no policies", async || {
        let (_, text) = stack.carriers[0].readiness().await?;
        let report: Value = serde_json::from_str(&text).map_err(|_| text.clone())?;
        let is_ready = |check: &str| report["checks"][check]["ready"].as_bool();
        let both = (is_ready("shards"), is_ready("carrier's policies"));
        if both == (Some(true), Some(false)) { Ok(()) } else { Err(text) }
    })
    .await;
    // The carrier has promoted since, so its passes go on.
    stack.accept(&with(doomed(&sink, "later"), "delay", "500ms")).await;
    stack.wait_state(TOPIC, "later", "dead", SOON).await;
    wait_pending(&stack, 2).await;
    run(["RENAME", aside, key]).await;
    assert_reports(&notices(&sink, "/topic", 1).await[0], &dead);
    notices(&sink, "/dead", 1).await;
    outbox_is_empty(&stack).await;
    stack.ready(SOON).await;
}
