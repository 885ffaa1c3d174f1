//! Quotas: all APIs together accept no more from a tenant than its quota allows, and other tenants notice nothing.

use futures_util::future::join_all;
use http::Method;
use ringback_testkit::Role;
use tokio::time::Instant;

use super::{Caller, ROOT, stacks};
use crate::prelude::*;
use crate::sample_jobs::{now, time};

fn jobs(name: &str, count: usize) -> Value {
    let job = |n| json!({"topic": "t", "id": format!("{name}-{n}"), "delay": "1h"});
    (0..count).map(job).collect()
}

async fn set(stack: &Stack, tenant: &str, quota: &Value, status: u16) -> Value {
    let path = format!("/v1/quotas/{tenant}");
    Caller::root(None).send(stack, Method::PUT, &path, Some(quota)).await.expect(status)
}

/// The number of jobs of a batch that are accepted. Asserts that the others are refused with 429.
async fn accepted(caller: &Caller, url: &str, batch: &Value) -> u64 {
    let reply = caller.send_to(&format!("{url}/v1/jobs/batch"), Method::POST, Some(batch)).await;
    if reply.status == 429 {
        assert_eq!(reply.header("retry-after"), Some("1"));
        return 0;
    }
    let results = reply.expect(200);
    let statuses = results["results"].as_array().expect("results").iter().map(|result| &result["status"]);
    assert!(statuses.clone().all(|status| *status == 201 || *status == 429), "{results}");
    statuses.filter(|status| **status == 201).count() as u64
}

async fn delayed(stack: &Stack, tenant: &'static str) -> u64 {
    let stats = Caller::root(Some(tenant)).get(stack, "/v1/stats").await.expect(200);
    stats["states"]["delayed"].as_u64().expect("a number")
}

/// A caller with a new key that all APIs know, and with it what was set before.
async fn caller(stack: &Stack, tenant: &str) -> Caller {
    let caller = Caller::of(stack, tenant).await;
    for url in stack.api_urls() {
        caller.wait_status_at(&format!("{url}/v1/topics"), 200, SOON).await;
    }
    caller
}

fn two_apis() -> StackOptions {
    StackOptions::api_only().count(Role::Api, 2).env("RINGBACK_ROOT_KEY", ROOT)
}

#[tokio::test]
async fn all_apis_together_accept_no_more_than_the_rate() {
    let stack = two_apis().start().await;
    set(&stack, "greedy", &json!({"jobs_per_second": 20}), 201).await;
    let (greedy, other) = (caller(&stack, "greedy").await, caller(&stack, "other").await);
    let (urls, started, mut sum) = (stack.api_urls(), Instant::now(), 0);
    let (mut round, mut others) = (0, 0);
    // Longer than refusals are remembered.
    while started.elapsed() < Duration::from_millis(1500) {
        let batches = [jobs(&format!("a{round}"), 50), jobs(&format!("b{round}"), 50)];
        let calls = urls.iter().zip(&batches).map(|(url, batch)| accepted(&greedy, url, batch));
        sum += join_all(calls).await.into_iter().sum::<u64>();
        // Whatever the other one does.
        let batch = jobs(&format!("c{round}"), 50);
        assert_eq!(accepted(&other, &urls[round % 2], &batch).await, 50);
        (round, others) = (round + 1, others + 50);
    }
    // A second is counted in slots, of which the first may have begun just before its end.
    let most = 20 * (1 + started.elapsed().as_millis() as u64 / 750);
    assert!((20..=most).contains(&sum), "{sum} of at most {most}");
    assert_eq!((delayed(&stack, "greedy").await, delayed(&stack, "other").await), (sum, others));
    let one = json!({"topic": "t", "delay": "1h"});
    eventually(SOON, "one job more is refused", async || {
        let reply = greedy.post(&stack, "/v1/jobs", &one).await;
        match (reply.status, reply.header("retry-after")) {
            (429, Some("1")) => Ok(()),
            (status, _) => Err(status),
        }
    })
    .await;
    eventually(SOON, "a second later it is not", async || {
        let status = greedy.post(&stack, "/v1/jobs", &one).await.status;
        if status == 201 { Ok(()) } else { Err(status) }
    })
    .await;
}

#[tokio::test]
async fn all_apis_together_accept_no_more_jobs_than_a_tenant_may_have() {
    let stack = two_apis().start().await;
    // A quota for all tenants that have none of their own.
    set(&stack, "*", &json!({"jobs": 30}), 201).await;
    let greedy = caller(&stack, "greedy").await;
    let (urls, mut sum) = (stack.api_urls(), 0);
    for round in 0..5 {
        let batches = [jobs(&format!("a{round}"), 20), jobs(&format!("b{round}"), 20)];
        let calls = urls.iter().zip(&batches).map(|(url, batch)| accepted(&greedy, url, batch));
        sum += join_all(calls).await.into_iter().sum::<u64>();
    }
    assert_eq!((sum, delayed(&stack, "greedy").await), (30, 30));
    let refused = greedy.post(&stack, "/v1/jobs", &json!({"topic": "t"})).await;
    refused.refused(429, "30 jobs that its quota allows");
    let all = greedy.get(&stack, "/v1/jobs").await.expect(200);
    for job in &all["items"].as_array().expect("jobs")[..10] {
        let path = format!("/v1/jobs/t/{}", job["id"].as_str().expect("an id"));
        greedy.send(&stack, Method::DELETE, &path, None).await.expect(200);
    }
    eventually(SOON, "as many more are accepted", async || {
        sum += accepted(&greedy, &urls[0], &jobs(&format!("c{sum}"), 20)).await;
        if sum == 40 { Ok(()) } else { Err(sum) }
    })
    .await;
    assert_eq!(delayed(&stack, "greedy").await, 30);
    // The operator is not limited, and what it adds is the tenant's.
    Caller::root(Some("greedy")).post(&stack, "/v1/jobs/batch", &jobs("root", 20)).await.expect(200);
    assert_eq!(delayed(&stack, "greedy").await, 50);
    set(&stack, "greedy", &json!({"jobs": 60}), 201).await;
    let mut own = 0;
    eventually(SOON, "its own quota holds", async || {
        own += accepted(&greedy, &urls[0], &jobs(&format!("d{own}"), 20)).await;
        if own == 10 { Ok(()) } else { Err(own) }
    })
    .await;
    set(&stack, "greedy", &json!({}), 200).await;
    assert_eq!(accepted(&greedy, &urls[0], &jobs("free", 20)).await, 20);
}

#[tokio::test]
async fn each_store_knows_quotas_and_imports_are_limited_too() {
    for options in stacks() {
        let stack = options.start().await;
        let (caller, root) = (Caller::of(&stack, "acme").await, Caller::root(None));
        let quota = json!({"tenant": "acme", "jobs_per_second": null, "jobs": 2, "topics": null, "lanes": null, "body_bytes": null});
        assert_eq!(set(&stack, "acme", &json!({"jobs": 2}), 201).await, quota);
        assert_eq!(set(&stack, "acme", &json!({"jobs": 2}), 200).await, quota);
        assert_eq!(root.get(&stack, "/v1/quotas").await.expect(200), json!({"items": [quota]}));
        for n in [1, 2] {
            let line = json!({"topic": "t", "id": n.to_string(), "url": "https://hooks.example.com/", "delay": "1h"});
            let summary = caller.post(&stack, "/v1/import", &line).await.expect(200);
            assert_eq!(summary["created"], 1, "{summary}");
        }
        let line = json!({"topic": "t", "id": "3", "url": "https://hooks.example.com/", "delay": "1h"});
        caller.post(&stack, "/v1/import", &line).await.expect(429);
        caller.post(&stack, "/v1/jobs", &json!({"topic": "t", "delay": "1h"})).await.expect(429);
        caller.get(&stack, "/v1/quotas").await.expect(403);
        let deleted = root.send(&stack, Method::DELETE, "/v1/quotas/acme", None).await.expect(200);
        assert_eq!(deleted, json!({"items": []}));
        root.send(&stack, Method::DELETE, "/v1/quotas/acme", None).await.expect(404);
        caller.post(&stack, "/v1/jobs", &json!({"topic": "t", "delay": "1h"})).await.expect(201);
        for (tenant, body) in [("a b", json!({"jobs": 1})), ("acme", json!({"jobs": 0}))] {
            set(&stack, tenant, &body, 422).await;
        }
    }
}

#[tokio::test]
async fn a_tenant_has_no_more_topics_origins_and_bytes_than_its_quota_allows() {
    for options in StackOptions::api_on_each_store() {
        // Puts all jobs into one shard.
        let stack = options.env("RINGBACK_ROOT_KEY", ROOT).env("RINGBACK_SHARDS", "1").start().await;
        set(&stack, "greedy", &json!({"topics": 2, "lanes": 3, "body_bytes": 10}), 201).await;
        let (greedy, other) = (caller(&stack, "greedy").await, caller(&stack, "other").await);
        let job = |topic: &str, id: &str, host: &str| json!({"topic": topic, "id": id, "delay": "1h", "url": format!("https://{host}.example/")});
        let submit = async |caller: &Caller, job: &Value| caller.post(&stack, "/v1/jobs", job).await;
        for (topic, host) in [("one", "x"), ("two", "x"), ("two", "y")] {
            submit(&greedy, &job(topic, host, host)).await.expect(201);
        }
        for (refused, what) in [
            (job("three", "1", "x"), "as many topics with jobs in the job's shard"),
            (job("two", "z", "z"), "as many pairs of a topic and an origin with jobs"),
        ] {
            let reply = submit(&greedy, &refused).await;
            assert_eq!(reply.header("retry-after"), Some("1"));
            reply.refused(429, what);
            submit(&other, &refused).await.expect(201);
        }
        submit(&greedy, &job("one", "2", "x")).await.expect(201);
        let batch = json!([job("three", "2", "x"), job("one", "3", "x")]);
        let results = greedy.post(&stack, "/v1/jobs/batch", &batch).await.expect(200);
        let statuses = [0, 1].map(|n| results["results"][n]["status"].as_u64());
        assert_eq!(statuses, [Some(429), Some(201)], "{results}");
        let paused = greedy.send(&stack, Method::POST, "/v1/topics/three/pause", None).await;
        paused.refused(429, "as many topics");
        let root = Caller::root(Some("greedy"));
        submit(&root, &job("three", "1", "x")).await.expect(201);

        let with_body =
            |body: &str| json!({"topic": "one", "delay": "1h", "url": "https://x.example/", "body": body});
        submit(&greedy, &with_body("12345678")).await.expect(201);
        submit(&greedy, &with_body("123456789")).await.refused(413, "quota allows 10");
        submit(&other, &with_body("123456789")).await.expect(201);
    }
}

#[tokio::test]
async fn schedules_wait_for_the_quota_of_their_tenant() {
    for options in stacks() {
        let stack = options.start().await;
        set(&stack, "acme", &json!({"jobs": 3}), 201).await;
        let caller = caller(&stack, "acme").await;
        let job = json!({"topic": "t", "ttr": "30s", "body": "12345678"});
        let schedule = json!({"every": "1s", "missed": "all", "job": job});
        let tick = "/v1/schedules/tick";
        caller.send(&stack, Method::PUT, tick, Some(&schedule)).await.expect(201);
        let is_late = |found: &Value| now().duration_since(time(&found["next_at"])).as_secs() >= 3;
        // The tenant has reached its quota of jobs.
        assert_eq!(caller.wait_get(&stack, tick, is_late).await["fired"], 3);
        assert_eq!(delayed(&stack, "acme").await, 0);

        // Missed firings are made up for.
        set(&stack, "acme", &json!({"jobs": 100}), 200).await;
        caller.wait_get(&stack, tick, |found| found["fired"].as_u64() > Some(6)).await;
        set(&stack, "acme", &json!({"body_bytes": 9}), 200).await;
        // The schedule's body is too large for the quota now.
        caller.wait_get(&stack, tick, is_late).await;
        let run = caller.send(&stack, Method::POST, "/v1/schedules/tick/run", None).await;
        run.refused(413, "quota allows 9");
    }
}
