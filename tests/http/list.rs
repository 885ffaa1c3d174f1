//! `GET /v1/jobs`: pages of any size, filters, jobs that move meanwhile, wrong queries, old cursors and a silent Redis.

use std::collections::{BTreeMap, BTreeSet};

use ringback_testkit::{Persistence, RedisServer};
use tokio::time::Instant;

use crate::prelude::*;

/// A job that is due in an hour.
fn far(id: &str) -> Value {
    json!({"topic": TOPIC, "id": id, "delay": "1h", "url": "http://127.0.0.1:9/"})
}

/// Submits `count` jobs that are due in an hour, and returns their ids.
async fn accept_far(stack: &Stack, count: usize) -> BTreeSet<String> {
    let ids: BTreeSet<_> = (0..count).map(|n| format!("far-{n}")).collect();
    let jobs: Vec<_> = ids.iter().map(|id| far(id)).collect();
    assert_eq!(stack.batch(&jobs).await.1["accepted"], count);
    ids
}

async fn page(stack: &Stack, query: &str) -> (u16, Value) {
    let reply = stack.get(&format!("/v1/jobs?{query}")).await;
    (reply.status, reply.json())
}

fn ids(pages: &[Vec<Value>]) -> BTreeSet<String> {
    pages.iter().flatten().map(|job| job["id"].as_str().expect("an id").to_owned()).collect()
}

#[tokio::test]
async fn a_listing_has_every_job_whatever_the_size_of_its_pages() {
    for options in StackOptions::api_on_each_store() {
        let stack = options.start().await;
        let known = accept_far(&stack, 300).await;
        for (limit, most) in
            [("limit=1", 1), ("limit=7", 7), ("limit=150", 150), ("", 100), ("limit=1000", 1000)]
        {
            let pages = stack.pages(&format!("/v1/jobs?{limit}")).await;
            assert!(pages.iter().all(|page| page.len() <= most), "{limit}");
            assert_eq!(ids(&pages), known, "{limit}");
            assert_eq!(pages.iter().flatten().count(), known.len(), "nothing moves, so nothing is met twice");
        }
        let first = &page(&stack, "limit=1").await.1["items"][0];
        let alone = stack.job(TOPIC, first["id"].as_str().expect("an id")).await.1;
        assert_eq!(*first, with(alone, "host", "127.0.0.1:9"));
    }
}

#[tokio::test]
async fn only_jobs_of_a_topic_or_state_are_listed_where_that_is_asked_for() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    accept_far(&stack, 40).await;
    for n in 0..5 {
        sink.answer_job(&format!("dead-{n}"), Answer::status(410));
        sink.answer_job(&format!("held-{n}"), Answer::status(200).held());
        stack.accept(&job(&sink, &format!("done-{n}"))).await;
        stack.accept(&with(job(&sink, &format!("dead-{n}")), "topic", "other")).await;
        stack.accept(&with(job(&sink, &format!("held-{n}")), "topic", "other")).await;
    }
    for n in 0..5 {
        stack.wait_state(TOPIC, &format!("done-{n}"), "done", SOON).await;
        stack.wait_state("other", &format!("dead-{n}"), "dead", SOON).await;
        stack.wait_state("other", &format!("held-{n}"), "reserved", SOON).await;
    }
    for (query, count) in [
        ("", 50),
        ("topic=e2e", 40),
        ("topic=other", 10),
        ("topic=none", 0),
        ("state=delayed", 40),
        ("state=ready", 0),
        ("state=reserved", 5),
        ("topic=other&state=dead", 5),
        ("topic=e2e&state=dead", 0),
    ] {
        let pages = stack.pages(&format!("/v1/jobs?limit=3&{query}")).await;
        assert!(pages.iter().all(|page| page.len() <= 3));
        assert_eq!(ids(&pages).len(), count, "{query}: {pages:?}");
    }
    let dead = stack.pages("/v1/jobs?state=dead&limit=1000").await.concat();
    assert!(dead.iter().all(|job| job["reason"] == "gone" && job["state"] == "dead"), "{dead:?}");
    sink.release();
}

#[tokio::test]
async fn jobs_that_stay_are_in_every_listing_while_others_come_and_go() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    let known = accept_far(&stack, 300).await;
    let moving = async {
        for round in 0..12 {
            let moving = |n| with(job(&sink, &format!("{round}-{n}")), "delay", format!("{}ms", n % 3 * 50));
            let jobs: Vec<_> = (0..60).map(moving).collect();
            assert_eq!(stack.batch(&jobs).await.1["accepted"], 60);
            sink.wait_for((round + 1) * 40, SOON).await;
        }
    };
    let listing = async {
        let mut states = BTreeMap::new();
        for limit in [1, 5, 17, 40, 100, 7, 23, 3] {
            let pages = stack.pages(&format!("/v1/jobs?limit={limit}")).await;
            assert!(pages.iter().all(|page| page.len() <= limit));
            let missing: Vec<_> = known.difference(&ids(&pages)).cloned().collect();
            assert!(missing.is_empty(), "limit {limit}: {missing:?}");
            for job in pages.iter().flatten() {
                *states.entry(job["state"].to_string()).or_insert(0) += 1;
            }
        }
        states
    };
    let ((), states) = tokio::join!(moving, listing);
    assert!(states.len() > 1, "others were met on their way: {states:?}");
}

#[tokio::test]
async fn mistakes_in_a_query_are_reported() {
    let stack = StackOptions::api_only().start().await;
    for (query, fields) in [
        ("state=done", vec!["state"]),
        ("state=cancelled&limit=0", vec!["state", "limit"]),
        ("colour=red&topic=a%20b&cursor=x", vec!["colour", "topic", "cursor"]),
        ("limit=5&limit=5", vec!["limit"]),
        // A place that no listing of this store can have come to.
        ("cursor=7fff-1-1", vec!["cursor"]),
    ] {
        let (status, problem) = page(&stack, query).await;
        assert_eq!(status, 422, "{query}: {problem}");
        let errors = problem["errors"].as_array().expect("errors");
        assert_eq!(errors.iter().map(|error| &error["field"]).collect::<Vec<_>>(), fields, "{problem}");
        assert!(errors.iter().all(|error| error["allowed"].as_str().is_some_and(|text| !text.is_empty())));
    }
    let problem = page(&stack, "state=done").await.1;
    assert_eq!(problem["errors"][0]["detail"], "done jobs have ended and are neither listed nor exported");
}

#[tokio::test]
async fn a_cursor_does_not_outlive_its_redis() {
    let redis = RedisServer::options().persistence(Persistence::Always);
    // With one shard, the cursor points into it; every life of Redis knows the beginning of a shard.
    let mut stack = StackOptions::api_only().redis(redis).env("RINGBACK_SHARDS", "1").start().await;
    let known = accept_far(&stack, 300).await;
    let (_, first) = page(&stack, "limit=100").await;
    let next = format!("limit=100&cursor={}", first["next"].as_str().expect("there are more"));
    assert_eq!(page(&stack, &next).await.0, 200);
    stack.redis_mut().kill();
    stack.redis_mut().restart().await;
    let problem = eventually(SOON, "the place is lost", async || match page(&stack, &next).await {
        (422, problem) => Ok(problem),
        (status, answer) => Err(format!("{status} {answer}")),
    })
    .await;
    assert_eq!(problem["errors"][0]["field"], "cursor", "{problem}");
    assert!(
        problem["errors"][0]["detail"].as_str().is_some_and(|text| text.contains("begin again")),
        "{problem}"
    );
    assert_eq!(ids(&stack.pages("/v1/jobs?limit=10").await), known);
}

#[tokio::test]
async fn a_silent_redis_is_reported_within_two_seconds() {
    let mut stack = StackOptions::api_only().start().await;
    accept_far(&stack, 10).await;
    stack.redis_mut().stop();
    for path in ["/v1/jobs", "/v1/export"] {
        let begin = Instant::now();
        let reply = stack.get(path).await;
        assert!(begin.elapsed() < Duration::from_secs(3), "{path}: {:?}", begin.elapsed());
        assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")), "{path}");
        assert_eq!(reply.header("content-type"), Some("application/problem+json"));
    }
    stack.redis_mut().cont();
    eventually(SOON, "jobs are listed again", async || match page(&stack, "").await {
        (200, page) if page["items"].as_array().is_some_and(|items| items.len() == 10) => Ok(()),
        (status, answer) => Err(format!("{status} {answer}")),
    })
    .await;
}
