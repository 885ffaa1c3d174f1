//! The root key and tenants: lists and counts of all tenants at once, and calls for one chosen tenant.

use http::Method;

use super::{Caller, ROOT, stacks};
use crate::prelude::*;

/// The items of a list of all tenants, one a page: tenant and name. The tenant of what belongs to none is empty.
async fn listed(stack: &Stack, path: &str, name: &str) -> Vec<(String, String)> {
    let (all, mut found, mut cursor) = (Caller::root(Some("~all")), Vec::new(), String::new());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for _ in 0..20 {
        let page = all.get(stack, &format!("{path}limit=1{cursor}")).await.expect(200);
        let items = page["items"].as_array().expect("items").iter();
        found.extend(items.map(|item| (text(&item["tenant"]), text(&item[name]))));
        let Some(next) = page["next"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    found.sort_unstable();
    found
}

#[tokio::test]
async fn lists_of_all_tenants_have_what_the_overview_counts() {
    for options in stacks() {
        let stack = options.start().await;
        for tenant in [None, Some("acme"), Some("bcme")] {
            let root = Caller::root(tenant);
            let id = tenant.unwrap_or("none");
            let dead = json!({
                "topic": "t", "id": id, "url": "https://h.example/", "state": "dead", "reason": "exhausted",
                "attempts": 1, "failures": 1, "tenant": tenant,
            });
            root.post(&stack, "/v1/import", &dead).await.expect(200);
            let schedule = json!({"every": "7d", "job": {"topic": "t", "url": "https://h.example/"}});
            let path = format!("/v1/schedules/{id}");
            root.send(&stack, Method::PUT, &path, Some(&schedule)).await.expect(201);
            let credential = json!({"to": ["https://b.example"], "bearer": "t"});
            let path = format!("/v1/credentials/{id}");
            root.send(&stack, Method::PUT, &path, Some(&credential)).await.expect(201);
            root.send(&stack, Method::PUT, "/v1/topics/policy", Some(&json!({"timeout": "5s"})))
                .await
                .expect(201);
        }
        let of_each = |names: [&str; 3]| {
            let tenants = ["", "acme", "bcme"].into_iter().zip(names);
            tenants.map(|(tenant, name)| (tenant.to_owned(), name.to_owned())).collect::<Vec<_>>()
        };
        let own = of_each(["none", "acme", "bcme"]);
        for path in ["/v1/jobs?state=dead&", "/v1/jobs?state=dead&include=request&", "/v1/schedules?"] {
            assert_eq!(listed(&stack, path, "id").await, own, "{path}");
        }
        let mut topics = [of_each(["t"; 3]), of_each(["policy"; 3])].concat();
        topics.sort_unstable();
        assert_eq!(listed(&stack, "/v1/topics?", "topic").await, topics);
        let all = Caller::root(Some("~all"));
        let credentials = all.get(&stack, "/v1/credentials").await.expect(200);
        assert_eq!(credentials["items"].as_array().map(Vec::len), Some(3), "{credentials}");
        let stats = all.get(&stack, "/v1/stats").await.expect(200);
        assert_eq!((&stats["states"]["dead"], &stats["topics"]), (&json!(3), &json!(3)), "{stats}");
        // A call about one tenant says which.
        for (method, path) in [
            (Method::GET, "/v1/topics/t"),
            (Method::GET, "/v1/jobs?topic=t"),
            (Method::GET, "/v1/jobs/t/acme"),
            (Method::POST, "/v1/topics/t/pause"),
            (Method::POST, "/v1/jobs/revive"),
            (Method::GET, "/v1/history"),
        ] {
            let refused = all.send(&stack, method.clone(), path, None).await.expect(422);
            assert!(refused.to_string().contains("ringback-tenant"), "{method} {path}: {refused}");
        }
        // Lists of others name no tenant, and no key chooses all.
        for (tenant, own) in [(Some("acme"), "acme"), (Some("~none"), "none"), (None, "none")] {
            let jobs = Caller::root(tenant).get(&stack, "/v1/jobs").await.expect(200);
            let items = jobs["items"].as_array().expect("items");
            assert!(items.len() == 1 && items[0]["id"] == own && items[0].get("tenant").is_none(), "{jobs}");
        }
        let key = Caller { tenant: Some("~all"), ..Caller::of(&stack, "acme").await };
        key.get(&stack, "/v1/jobs").await.expect(403);
    }
}

#[tokio::test]
async fn the_operator_settles_the_receipts_of_the_tenant_that_it_has_chosen_alone() {
    let stack = StackOptions::api_only().env("RINGBACK_ROOT_KEY", ROOT).unchecked().start().await;
    let mut receipts = Vec::new();
    for id in ["one", "two"] {
        let acme = Caller::root(Some("acme"));
        acme.post(&stack, "/v1/jobs", &json!({"topic": "t", "id": id})).await.expect(201);
        let pulled = acme.post(&stack, "/v1/topics/t/reserve", &json!({"wait": "5s"})).await.expect(200);
        receipts.push(pulled["jobs"][0]["receipt"].as_str().expect("a receipt").to_owned());
    }
    for other in ["bcme", "~none"] {
        let other = Caller::root(Some(other));
        for how in ["finish", "retry", "bury", "release", "renew"] {
            let path = format!("/v1/receipts/{}/{how}", receipts[0]);
            other.post(&stack, &path, &json!({})).await.expect(404);
        }
        let many =
            other.post(&stack, "/v1/receipts/finish", &json!({"receipts": receipts})).await.expect(200);
        assert!(
            many["results"].as_array().expect("results").iter().all(|one| one["status"] == 404),
            "{many}"
        );
    }
    for (receipt, tenant) in receipts.iter().zip([Some("acme"), None]) {
        let path = format!("/v1/receipts/{receipt}/finish");
        Caller::root(tenant).post(&stack, &path, &json!({})).await.expect(200);
    }
}

#[tokio::test]
async fn the_statistics_of_a_tenant_with_many_topics_are_answered() {
    for options in stacks() {
        let stack = options.start().await;
        let root = Caller::root(Some("acme"));
        // A topic that has had jobs stays known.
        for batch in 0..20 {
            let job = |n: usize| json!({"topic": format!("t-{batch}-{n}"), "delay": "1h"});
            let jobs: Vec<_> = (0..1_000).map(job).collect();
            let answer = root.post(&stack, "/v1/jobs/batch", &json!(jobs)).await.expect(200);
            let mut results = answer["results"].as_array().expect("results").iter();
            assert_eq!(answer["accepted"], 1_000, "{:?}", results.find(|one| one["status"] != 201));
        }
        for caller in [&root, &Caller::of(&stack, "acme").await] {
            let begun = tokio::time::Instant::now();
            let stats = caller.get(&stack, "/v1/stats").await.expect(200);
            eprintln!("stats after {:?}", begun.elapsed());
            assert_eq!((&stats["topics"], &stats["states"]["delayed"]), (&json!(20_000), &json!(20_000)));
        }
        let some = json!({"tenant": "acme", "scopes": ["read"], "topics": ["t-0-1", "t-1-1", "none"]});
        let some = Caller::with(&stack, &some).await.get(&stack, "/v1/stats").await.expect(200);
        assert_eq!((&some["topics"], &some["states"]["delayed"]), (&json!(2), &json!(2)), "{some}");
    }
}
