//! Topics over HTTP: counts and lateness of one, pages of all, pauses, and the limit of topics and origins.

use ringback_testkit::set_shard_field;

use crate::prelude::*;
use crate::redis_layout::keys;
use crate::sample_jobs::time;

async fn accept_far(stack: &Stack, topic: &str, count: usize) {
    let far =
        |n| json!({"topic": topic, "id": format!("far-{n}"), "delay": "1h", "url": "http://127.0.0.1:9/"});
    let jobs: Vec<_> = (0..count).map(far).collect();
    assert_eq!(stack.batch(&jobs).await.1["accepted"], count);
}

#[tokio::test]
async fn a_topic_shows_how_many_of_its_jobs_are_in_each_state() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    accept_far(&stack, TOPIC, 20).await;
    accept_far(&stack, "other", 3).await;
    sink.answer_job("dead", Answer::status(410));
    sink.answer_job("held", Answer::status(200).held());
    for id in ["dead", "held", "done"] {
        stack.accept(&job(&sink, id)).await;
    }
    stack.wait_state(TOPIC, "done", "done", SOON).await;
    stack.wait_state(TOPIC, "dead", "dead", SOON).await;
    stack.wait_state(TOPIC, "held", "reserved", SOON).await;
    let expected = json!({"topic": TOPIC, "paused": false, "late_ms": 0, "policy": null,
        "states": {"delayed": 20, "ready": 0, "reserved": 1, "done": 1, "dead": 1, "cancelled": 0}});
    stack.wait_get(&format!("/v1/topics/{TOPIC}"), SOON, |answer| *answer == expected).await;
    assert_eq!(stack.topic("other").await["states"]["delayed"], 3);
    let (status, problem) = stack.get("/v1/topics/another").await.parts();
    assert_eq!((status, problem["status"].as_u64()), (404, Some(404)), "{problem}");
    let (status, problem) = stack.get("/v1/topics/a%20b").await.parts();
    assert_eq!((status, &problem["errors"][0]["field"]), (422, &json!("topic")), "{problem}");
}

#[tokio::test]
async fn the_lateness_of_waiting_jobs_is_known() {
    let stack = StackOptions::api_only().start().await;
    let accepted = stack.accept(&json!({"topic": TOPIC, "id": "a", "url": "http://127.0.0.1:9/"})).await;
    eventually(SOON, "it is late", async || {
        let answer = stack.topic(TOPIC).await;
        assert_eq!(answer["oldest_due_at"], accepted["due_at"]);
        time(&answer["oldest_due_at"]);
        if answer["late_ms"].as_u64() > Some(0) { Ok(()) } else { Err(answer) }
    })
    .await;
}

#[tokio::test]
async fn all_topics_are_listed_in_order_whatever_the_size_of_the_pages() {
    for options in StackOptions::api_on_each_store() {
        let stack = options.start().await;
        let mut names: Vec<_> = (0..23).map(|n| format!("topic-{n}")).collect();
        for name in &names {
            accept_far(&stack, name, 5).await;
        }
        names.sort_unstable();
        for limit in [1, 4, 23, 1000] {
            let (mut met, mut next) = (Vec::new(), String::new());
            loop {
                let (status, page) = stack.get(&format!("/v1/topics?limit={limit}{next}")).await.parts();
                assert_eq!(status, 200, "{page}");
                let items = page["items"].as_array().expect("items").clone();
                assert!(items.len() <= limit, "{page}");
                met.extend(items);
                let Some(cursor) = page["next"].as_str() else { break };
                next = format!("&cursor={cursor}");
            }
            let listed: Vec<_> = met.iter().map(|topic| topic["topic"].as_str().expect("a name")).collect();
            assert_eq!(listed, names, "{limit} at a time");
            assert!(met.iter().all(|topic| topic["states"]["delayed"] == 5), "{met:?}");
        }
        let (status, problem) = stack.get("/v1/topics?cursor=%20&limit=0&colour=red").await.parts();
        let errors = problem["errors"].as_array().expect("errors").iter();
        let fields: Vec<_> = errors.map(|error| error["field"].as_str().expect("a name")).collect();
        assert_eq!((status, fields), (422, vec!["colour", "cursor", "limit"]));
    }
}

#[tokio::test]
async fn nothing_of_a_paused_topic_is_delivered_until_it_is_resumed() {
    for options in [Stack::options(), Stack::options().store("embedded:./data").in_one_process()] {
        let (stack, sink) = (options.start().await, Sink::start().await);
        let path = |topic: &str, verb: &str| format!("/v1/topics/{topic}/{verb}");
        let (status, answer) = stack.post_empty(&path(TOPIC, "pause")).await.parts();
        assert_eq!((status, &answer["paused"]), (200, &json!(true)), "{answer}");
        stack.accept(&job(&sink, "now")).await;
        stack.accept(&with(job(&sink, "soon"), "delay", "50ms")).await;
        let for_pull = json!({"topic": TOPIC, "id": "pull", "body": 1});
        stack.accept(&for_pull).await;
        stack.wait_state(TOPIC, "soon", "ready", SOON).await;
        let other = with(with(job(&sink, "other"), "topic", "other"), "delay", "200ms");
        stack.accept(&other).await;
        sink.wait_for_job("other", 1, SOON).await;
        assert!(sink.arrivals().iter().all(|arrival| arrival.job_id() == "other"));
        let reserve = path(TOPIC, "reserve");
        assert_eq!(stack.post_empty(&reserve).await.parts().1["jobs"], json!([]));
        assert_eq!(stack.topic(TOPIC).await["states"]["ready"], 3);

        let (status, answer) = stack.post_empty(&path(TOPIC, "resume")).await.parts();
        assert_eq!((status, &answer["paused"]), (200, &json!(false)), "{answer}");
        sink.wait_for_job("now", 1, SOON).await;
        sink.wait_for_job("soon", 1, SOON).await;
        let pulled = stack.post_empty(&reserve).await.parts().1;
        assert_eq!(pulled["jobs"][0]["id"], "pull");
        assert_eq!(stack.post_empty(&path("unknown", "resume")).await.parts().0, 404);
        assert_eq!(stack.post_empty(&path("a%20b", "pause")).await.parts().0, 422);
    }
}

#[tokio::test]
async fn a_consumer_that_waits_for_a_paused_topic_is_given_its_jobs_once_it_is_resumed() {
    let stack = StackOptions::api_only().start().await;
    stack.accept(&json!({"topic": TOPIC, "id": "a"})).await;
    stack.post_empty(&format!("/v1/topics/{TOPIC}/pause")).await;
    let ask = json!({"wait": "30s"});
    let wait = stack.reserve_one(TOPIC, &ask);
    let resume = async {
        eventually(SOON, "the consumer waits", async || {
            let lanes = stack.redis().client().await;
            let paused: u64 = paused(lanes).await;
            if paused > 0 { Ok(()) } else { Err(paused) }
        })
        .await;
        stack.post_empty(&format!("/v1/topics/{TOPIC}/resume")).await.parts()
    };
    let (job, resumed) = tokio::join!(wait, resume);
    assert_eq!(resumed.0, 200);
    assert_eq!(job["id"], "a");
}

/// The number of shards that have paused lanes.
async fn paused(mut redis: redis::aio::MultiplexedConnection) -> u64 {
    let keys: Vec<String> = keys::all(&mut redis, "paused").await;
    keys.len() as u64
}

#[tokio::test]
async fn a_topic_or_an_origin_beyond_the_limit_is_refused_with_the_limit_and_what_to_do() {
    let stack = StackOptions::api_only().start().await;
    accept_far(&stack, TOPIC, 60).await;
    let mut redis = stack.redis().client().await;
    let shards: Vec<String> = keys::all(&mut redis, "shard").await;
    assert_eq!(shards.len(), 4);
    let job = |topic: &str, id: &str, url: &str| json!({"topic": topic, "id": id, "delay": "1h", "url": url});
    let known = job(TOPIC, "known", "http://127.0.0.1:9/");
    for (count, most, new, field) in [
        ("topics", 10_000, job("new", "a", "http://127.0.0.1:9/"), "topic"),
        ("lanes", 100_000, job(TOPIC, "b", "http://127.0.0.1:10/"), "url"),
    ] {
        for shard in &shards {
            set_shard_field(&mut redis, shard, count, most).await;
        }
        let (status, problem) = stack.submit(&new).await;
        let error = &problem["errors"][0];
        assert_eq!((status, &error["field"]), (422, &json!(field)), "{problem}");
        assert!(error["detail"].as_str().is_some_and(|text| text.contains(&most.to_string())), "{problem}");
        assert!(error["allowed"].as_str().is_some_and(|text| text.contains("use fewer")), "{problem}");
        let (_, batch) = stack.batch(&[new, known.clone()]).await;
        assert_eq!((&batch["accepted"], &batch["results"][0]["status"]), (&json!(1), &json!(422)), "{batch}");
    }
    let (status, problem) = stack.post_empty("/v1/topics/new/pause").await.parts();
    assert_eq!((status, &problem["errors"][0]["field"]), (422, &json!("topic")), "{problem}");
    // A repair corrects the count, and then the refused job is accepted.
    let (status, check) = stack.post_empty("/v1/check/repair").await.parts();
    assert_eq!((status, &check["clean"], &check["repaired"]), (200, &json!(true), &json!(4)), "{check}");
    assert_eq!(stack.submit(&job("new", "a", "http://127.0.0.1:9/")).await.0, 201);
}
