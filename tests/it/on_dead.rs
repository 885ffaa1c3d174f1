//! `on_dead` on running processes: whoever asked for it is told which job died and why, once, whatever dies in
//! between.

use std::collections::BTreeSet;
use std::time::Duration;

use http::Method;
use ringback_testkit::{
    Answer, Arrival, RedisServer, Role, Script, Sink, Stack, StackOptions, eventually, http_client,
};
use serde_json::{Value, json};

use crate::sample::{SOON, TOPIC, job, sentinel, with};

const NOTICES: &str = "ringback.on-dead";

/// Redis with a process of each role, and all in one process on a file.
fn both() -> [StackOptions; 2] {
    [Stack::options(), Stack::options().in_one_process().store("embedded:./data")]
}

/// A job that dies at its first attempt, of which `/dead` is told.
fn doomed(sink: &Sink, id: &str) -> Value {
    let job = with(job(sink, id), "retry", json!({"preset": "none"}));
    with(with(job, "on_dead", sink.url("/dead")), "context", json!({"tenant": "a7"}))
}

/// The notices that have come to a path, at least so many.
async fn notices(sink: &Sink, path: &str, wanted: usize) -> Vec<Arrival> {
    eventually(SOON, &format!("{wanted} notices at {path}"), async || {
        let came: Vec<_> = sink.arrivals().into_iter().filter(|arrival| arrival.path == path).collect();
        if came.len() >= wanted { Ok(came) } else { Err(came.len()) }
    })
    .await
}

fn body(arrival: &Arrival) -> Value {
    serde_json::from_slice(&arrival.body).expect("a notice is JSON")
}

/// What a notice says of a job is what the API shows of it.
fn tells(notice: &Arrival, job: &Value) {
    let body = body(notice);
    assert_eq!(body["type"], "job.dead", "{body}");
    let mut data = body["data"].clone();
    let context = data.as_object_mut().expect("an object").remove("context");
    assert_eq!((&data, context), (job, Some(json!({"tenant": "a7"}))));
    let died = body["timestamp"].as_str().expect("a time");
    assert!(died >= job["created_at"].as_str().expect("a time"), "{body}");
    assert_eq!(notice.header("content-type"), Some("application/json"));
    assert_eq!(notice.header("ringback-topic"), Some(NOTICES));
    assert_eq!(notice.header("ringback-context-tenant"), Some("a7"));
    assert!(notice.header("webhook-id").is_some());
}

async fn put(stack: &Stack, topic: &str, policy: Value) {
    let body = Some(("application/json", policy.to_string().into()));
    let reply = stack.request(Method::PUT, &format!("/v1/topics/{topic}"), body).await;
    assert!(matches!(reply.status, 200 | 201), "{} {:?}", reply.status, reply.body);
}

/// How many jobs of a topic are in a state.
async fn count(stack: &Stack, topic: &str, state: &str) -> u64 {
    let reply = stack.request(Method::GET, &format!("/v1/topics/{topic}"), None).await;
    reply.json()["states"][state].as_u64().unwrap_or(0)
}

/// That so many deaths are still to be told.
async fn to_be_told(stack: &Stack, deaths: u64) {
    eventually(SOON, &format!("{deaths} deaths are in the outbox"), async || {
        let stats = stack.stats().await;
        if stats["outbox"]["deaths"] == deaths { Ok(()) } else { Err(stats) }
    })
    .await;
}

async fn all_is_told(stack: &Stack) {
    to_be_told(stack, 0).await;
}

#[tokio::test]
async fn a_job_that_is_given_up_is_told_of_as_it_is_shown() {
    for options in both() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        sink.answer_job("exhausted", Answer::status(500));
        sink.answer_job("gone", Answer::status(410));
        for (n, id) in ["exhausted", "gone"].into_iter().enumerate() {
            let mut doomed = doomed(&sink, id);
            doomed["retry"] = json!({"delays": ["10ms"]});
            stack.accept(&doomed).await;
            let dead = stack.wait_state(TOPIC, id, "dead", SOON).await;
            assert_eq!((&dead["reason"], &dead["id"]), (&json!(id), &json!(id)));
            let notice = notices(&sink, "/dead", n + 1).await.remove(n);
            tells(&notice, &dead);
        }
        all_is_told(&stack).await;
        assert_eq!(notices(&sink, "/dead", 2).await.len(), 2, "each is told once");
        let teller = stack.carriers.first().or(stack.ups.first()).expect("somebody tells");
        let text = teller.metrics().await;
        assert!(
            text.lines().any(|line| line == "ringback_carrier_published_dead_letter_notices_total 2"),
            "{text}"
        );
        assert_eq!(stack.count_in("dead").await, 2);
    }
}

#[tokio::test]
async fn deaths_in_the_hands_of_consumers_are_told() {
    for options in both() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        let reserve = async |ttr: &str| {
            let ask = json!({"ttr": ttr, "wait": "10s"}).to_string();
            let ask = Some(("application/json", ask.into()));
            let reply = stack.request(Method::POST, &format!("/v1/topics/{TOPIC}/reserve"), ask).await;
            reply.json()["jobs"][0]["receipt"].as_str().expect("a receipt").to_owned()
        };
        let pull = |id| {
            let mut job = doomed(&sink, id);
            job.as_object_mut().expect("a job").remove("url");
            job
        };
        stack.accept(&pull("buried")).await;
        let (receipt, word) = (reserve("1m").await, json!({"reason": "unwanted", "error": "no paper"}));
        let word = Some(("application/json", word.to_string().into()));
        let said = stack.request(Method::POST, &format!("/v1/receipts/{receipt}/bury"), word).await;
        assert_eq!(said.status, 200, "{:?}", said.body);
        let notice = notices(&sink, "/dead", 1).await.remove(0);
        tells(&notice, &stack.get(TOPIC, "buried").await.1);
        assert_eq!(body(&notice)["data"]["last"]["error"], "no paper");

        stack.accept(&pull("lapsed")).await;
        reserve("100ms").await;
        let dead = stack.wait_state(TOPIC, "lapsed", "dead", SOON).await;
        tells(&notices(&sink, "/dead", 2).await[1], &dead);
    }
}

#[tokio::test]
async fn a_job_that_no_notifier_survives_is_told_of() {
    let options = Stack::options().lease_margin("200ms");
    let (mut stack, sink) = (options.start().await, Sink::start().await);
    sink.answer_job("poison", Answer::status(200).held());
    stack.accept(&with(doomed(&sink, "poison"), "timeout", "300ms")).await;
    for attempt in 1..=5 {
        sink.wait_for_job("poison", attempt, SOON).await;
        stack.notifiers[0].restart();
    }
    let dead = stack.wait_state(TOPIC, "poison", "dead", SOON).await;
    assert_eq!((&dead["reason"], &dead["attempts"]), (&json!("lost"), &json!(5)));
    tells(&notices(&sink, "/dead", 1).await[0], &dead);
}

#[tokio::test]
async fn the_topic_s_policy_says_where_and_the_job_s_own_word_counts_before_it() {
    for options in both() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        sink.answer(Script::always(Answer::status(500)));
        sink.answer_path("/dead", Answer::status(200));
        sink.answer_path("/topic", Answer::status(200));
        // The job is there before its topic has a policy.
        let mut bare = with(doomed(&sink, "bare"), "delay", "1s");
        bare.as_object_mut().expect("a job").remove("on_dead");
        stack.accept(&bare).await;
        let mut nobody = bare.clone();
        (nobody["id"], nobody["topic"], nobody["delay"]) = (json!("nobody"), json!("other"), json!(0));
        stack.accept(&nobody).await;
        put(&stack, TOPIC, json!({"on_dead": sink.url("/topic")})).await;
        stack.accept(&doomed(&sink, "own")).await;
        let dead = stack.wait_state(TOPIC, "bare", "dead", SOON).await;
        tells(&notices(&sink, "/topic", 1).await[0], &dead);
        tells(&notices(&sink, "/dead", 1).await[0], &stack.get(TOPIC, "own").await.1);
        all_is_told(&stack).await;
        assert_eq!(stack.count_in("dead").await, 3);
        let came = (notices(&sink, "/topic", 1).await.len(), notices(&sink, "/dead", 1).await.len());
        assert_eq!((came, count(&stack, NOTICES, "ready").await), ((1, 1), 0), "nobody is told of the third");
    }
}

#[tokio::test]
async fn a_notice_is_tried_as_its_topic_says_and_its_own_death_is_told_to_nobody() {
    for options in both() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        sink.answer(Answer::status(500));
        put(
            &stack,
            NOTICES,
            json!({"retry": {"delays": ["10ms"], "jitter": 0}, "headers": {"x-from": "us"}}),
        )
        .await;
        let refused = json!({"on_dead": "http://h/"}).to_string();
        let reply = stack
            .request(
                Method::PUT,
                &format!("/v1/topics/{NOTICES}"),
                Some(("application/json", refused.into())),
            )
            .await;
        assert_eq!((reply.status, &reply.json()["errors"][0]["field"]), (422, &json!("on_dead")));
        let (status, problem) = stack.submit(&with(doomed(&sink, "no"), "topic", NOTICES)).await;
        assert_eq!((status, &problem["errors"][0]["field"]), (422, &json!("on_dead")), "{problem}");

        stack.accept(&doomed(&sink, "a")).await;
        let tried = notices(&sink, "/dead", 2).await;
        assert_eq!(tried[0].header("x-from"), Some("us"));
        assert_eq!((tried[0].attempt(), tried[1].attempt()), (Some(1), Some(2)));
        assert_eq!(tried[0].header("webhook-id"), tried[1].header("webhook-id"));
        eventually(SOON, "the notice is a dead letter", async || {
            match count(&stack, NOTICES, "dead").await {
                1 => Ok(()),
                n => Err(n),
            }
        })
        .await;
        all_is_told(&stack).await;
        sentinel_through(&stack, &sink).await;
        assert_eq!(count(&stack, NOTICES, "dead").await, 1);
        assert_eq!(notices(&sink, "/dead", 2).await.len(), 2, "and nobody is told of that");
    }
}

/// What should have arrived by now has, at a receiver that answers as it likes.
async fn sentinel_through(stack: &Stack, sink: &Sink) {
    sink.answer_job("sentinel", Answer::status(200));
    sentinel(stack, sink, "sentinel").await;
}

#[tokio::test]
async fn what_died_while_no_carrier_ran_is_told_by_the_next_one_whatever_became_of_it() {
    let (mut stack, sink) = (Stack::start().await, Sink::start().await);
    sink.answer(Answer::status(410));
    sink.answer_path("/dead", Answer::status(200));
    stack.carriers[0].kill();
    let mut as_they_died = Vec::new();
    for n in 0..20 {
        let id = format!("job-{n}");
        let large = with(doomed(&sink, &id), "body", "x".repeat(if n % 5 == 0 { 10_000 } else { 10 }));
        stack.accept(&large).await;
        as_they_died.push(stack.wait_state(TOPIC, &id, "dead", SOON).await);
    }
    to_be_told(&stack, 20).await;
    let gone = stack.request(Method::DELETE, &format!("/v1/topics/{TOPIC}/dead"), None).await;
    assert_eq!(gone.status, 200, "{:?}", gone.body);
    stack.add(Role::Carrier).await;
    let told = notices(&sink, "/dead", 20).await;
    for job in &as_they_died {
        let notice = told.iter().find(|notice| body(notice)["data"]["id"] == job["id"]);
        tells(notice.unwrap_or_else(|| panic!("nobody is told of {job}")), job);
    }
    all_is_told(&stack).await;
    assert_eq!(notices(&sink, "/dead", 20).await.len(), 20);
}

#[tokio::test]
async fn carriers_killed_while_they_tell_leave_out_no_death() {
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
    let told = notices(&sink, "/dead", 600).await;
    let ids: BTreeSet<String> = told.iter().map(|notice| body(notice)["data"]["id"].to_string()).collect();
    assert_eq!(ids.len(), 600);
    all_is_told(&stack).await;
    // A notifier may hand over twice; a carrier that died makes no second notice.
    let names: BTreeSet<_> =
        told.iter().map(|notice| notice.header("webhook-id").expect("a name").to_owned()).collect();
    assert_eq!(names.len(), 600);
}

#[tokio::test]
async fn a_full_store_keeps_what_is_to_be_told_until_there_is_room() {
    let (mut stack, sink) = (Stack::start().await, Sink::start().await);
    sink.answer(Answer::status(410));
    sink.answer_path("/dead", Answer::status(200));
    stack.accept(&with(doomed(&sink, "a"), "delay", "1s")).await;
    let limit = async |stack: &Stack, bytes: u64| {
        let mut config = redis::cmd("CONFIG");
        config.arg("SET").arg("maxmemory").arg(bytes);
        config.exec_async(&mut stack.redis().client().await).await.expect("CONFIG SET");
    };
    limit(&stack, 1_000_000).await;
    let dead = stack.wait_state(TOPIC, "a", "dead", SOON).await;
    let carrier = &stack.carriers[0];
    eventually(SOON, "the carrier counts that it could not tell", async || {
        let text = carrier.metrics().await;
        let line =
            text.lines().find(|line| line.starts_with("ringback_carrier_rejected_dead_letter_notices_total"));
        if line.is_some_and(|line| !line.ends_with(" 0")) { Ok(()) } else { Err(format!("{line:?}")) }
    })
    .await;
    to_be_told(&stack, 1).await;
    limit(&stack, 0).await;
    tells(&notices(&sink, "/dead", 1).await[0], &dead);
    all_is_told(&stack).await;
    assert!(stack.carriers[0].log().contains("dead-letter notices are rejected"), "it is said once");
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
    to_be_told(&stack, 2).await;
    let mut client = stack.redis().client().await;
    let keys: Vec<String> = redis::cmd("KEYS").arg("*:outbox").query_async(&mut client).await.expect("KEYS");
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
    to_be_told(&stack, 2 + torn).await;
    stack.add(Role::Carrier).await;
    let told = notices(&sink, "/dead", 2).await;
    let mut ids: Vec<_> = told.iter().map(|notice| body(notice)["data"]["id"].to_string()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["\"a\"", "\"b\""]);
    all_is_told(&stack).await;
    let text = stack.carriers[1].metrics().await;
    let line = text.lines().find(|line| line.starts_with("ringback_carrier_unreadable_dead_letters_total"));
    assert_eq!(
        line.and_then(|line| line.rsplit(' ').next()).map(str::to_owned),
        Some(torn.to_string()),
        "{line:?}"
    );
}

#[tokio::test]
async fn one_process_killed_while_it_tells_leaves_out_no_death() {
    let options = Stack::options().in_one_process().store("embedded:./data");
    let (mut stack, sink) = (options.start().await, Sink::start().await);
    sink.answer(Answer::status(410));
    sink.answer_path("/dead", Answer::status(200));
    // What was in flight when it was killed comes again soon.
    put(&stack, NOTICES, json!({"timeout": "500ms"})).await;
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
    let ids = eventually(SOON, "every death is told", async || {
        let told = notices(&sink, "/dead", 300).await;
        let ids: BTreeSet<String> =
            told.iter().map(|notice| body(notice)["data"]["id"].to_string()).collect();
        if ids.len() == 300 { Ok(told) } else { Err(ids.len()) }
    })
    .await;
    let names: BTreeSet<_> =
        ids.iter().map(|notice| notice.header("webhook-id").map(str::to_owned)).collect();
    assert_eq!(names.len(), 300, "a process that died makes no second notice");
    all_is_told(&stack).await;
}

#[tokio::test]
async fn a_notice_that_is_one_topic_too_many_waits_until_there_is_room() {
    let (mut stack, sink) = (Stack::start().await, Sink::start().await);
    sink.answer(Answer::status(410));
    sink.answer_path("/dead", Answer::status(200));
    let mut client = stack.redis().client().await;
    let shards = eventually(SOON, "every shard is held", async || {
        let keys: Vec<String> =
            redis::cmd("KEYS").arg("*:shard").query_async(&mut client.clone()).await.expect("KEYS");
        if keys.len() == 4 { Ok(keys) } else { Err(keys.len()) }
    })
    .await;
    stack.carriers[0].kill();
    stack.accept(&doomed(&sink, "a")).await;
    let dead = stack.wait_state(TOPIC, "a", "dead", SOON).await;
    let mut more_topics = async |by: i64| {
        for shard in &shards {
            let mut count = redis::cmd("HINCRBY");
            count.arg(shard).arg("topics").arg(by).exec_async(&mut client).await.expect("HINCRBY");
        }
    };
    more_topics(10_000).await;
    let carrier = stack.add(Role::Carrier).await;
    eventually(SOON, "the notice was refused", async || {
        let text = carrier.metrics().await;
        if text.contains("ringback_carrier_rejected_dead_letter_notices_total") {
            Ok(())
        } else {
            Err("it was not")
        }
    })
    .await;
    more_topics(-10_000).await;
    tells(&notices(&sink, "/dead", 1).await[0], &dead);
    all_is_told(&stack).await;
}

#[tokio::test]
async fn a_carrier_that_knows_no_policies_yet_leaves_deaths_untold() {
    let options = Stack::options().count(Role::Carrier, 0);
    let (mut stack, sink) = (options.start().await, Sink::start().await);
    sink.answer(Answer::status(410));
    sink.answer_path("/topic", Answer::status(200));
    put(&stack, TOPIC, json!({"on_dead": sink.url("/topic")})).await;
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
    let ready = format!("http://{}/readyz", stack.carriers[0].admin());
    eventually(SOON, "the carrier holds the shards and has no policies", async || {
        let answer = http_client().get(&ready).send().await.map_err(|error| error.to_string())?;
        let text = answer.text().await.expect("a body");
        let report: Value = serde_json::from_str(&text).map_err(|_| text.clone())?;
        let checks = &report["checks"];
        let waits = checks["shards"]["ready"] == true && checks["carrier's policies"]["ready"] == false;
        if waits { Ok(()) } else { Err(text) }
    })
    .await;
    // It has promoted since, so its passes go on.
    stack.accept(&with(doomed(&sink, "later"), "delay", "500ms")).await;
    stack.wait_state(TOPIC, "later", "dead", SOON).await;
    to_be_told(&stack, 2).await;
    run(["RENAME", aside, key]).await;
    tells(&notices(&sink, "/topic", 1).await[0], &dead);
    notices(&sink, "/dead", 1).await;
    all_is_told(&stack).await;
    stack.ready(SOON).await;
}

#[tokio::test]
async fn deaths_are_told_on_a_cluster() {
    let options = Stack::options().cluster(RedisServer::options()).count(Role::Carrier, 2);
    let (stack, sink) = (options.start().await, Sink::start().await);
    sink.answer(Answer::status(410));
    sink.answer_path("/dead", Answer::status(200));
    let jobs: Vec<Value> = (0..50).map(|n| doomed(&sink, &format!("job-{n}"))).collect();
    assert_eq!(stack.batch(&jobs).await.1["accepted"], 50);
    let told = notices(&sink, "/dead", 50).await;
    let ids: BTreeSet<String> = told.iter().map(|notice| body(notice)["data"]["id"].to_string()).collect();
    assert_eq!((ids.len(), told.len()), (50, 50));
    all_is_told(&stack).await;
}
