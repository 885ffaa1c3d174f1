//! `include=request`: answers show what was submitted with a job and what applies to it, in pages of bounded size.

use std::collections::BTreeSet;

use crate::prelude::*;

const FAR: &str = "http://127.0.0.1:9/hook?a=b'c";

/// Submitted with every field, as text: the body is to come back byte for byte.
const RICH: &str = r#"{"topic":"e2e","id":"rich","delay":"1h","url":"http://127.0.0.1:9/hook?a=b'c",
    "body":{"b": 1.0e5,  "a":"\u00e9"},"headers":{"X-Merchant":"88231","Authorization":"Bearer hunter2"},
    "context":{"Key":"v"},"retry":{"delays":["15s",180],"max":7,"jitter":0},"timeout":5,
    "on_dead":"http://127.0.0.1:9/dead"}"#;

async fn inspect(stack: &Stack, topic: &str, id: &str) -> Value {
    stack.get(&format!("/v1/jobs/{topic}/{id}?include=request")).await.expect(200)
}

#[tokio::test]
async fn a_job_has_its_request_where_that_is_asked_for() {
    for options in StackOptions::api_on_each_store() {
        let stack = options.start().await;
        assert_eq!(stack.submit_text(RICH).await.status, 201);
        let request = json!({"url": "http://127.0.0.1:9/hook?a=b%27c", "body": {"b": 1.0e5, "a": "é"},
            "headers": {"x-merchant": "88231", "authorization": "[masked by ringback]"},
            "context": {"Key": "v"}, "retry": {"delays": ["15s", "3m"], "max": 7, "jitter": 0.0},
            "timeout": "5s", "on_dead": "http://127.0.0.1:9/dead"});
        let effective = json!({"url": "http://127.0.0.1:9/hook?a=b%27c",
            "retry": {"from": "job", "delays": ["15s", "3m"], "max": 7, "jitter": 0.0},
            "timeout": {"from": "job", "value": "5s"},
            "headers": {"x-merchant": "88231", "authorization": "[masked by ringback]"},
            "on_dead": {"from": "job", "value": "http://127.0.0.1:9/dead"}});
        let plain = stack.job(TOPIC, "rich").await.1;
        let mut whole = plain.clone();
        (whole["request"], whole["effective"]) = (request, effective);
        assert_eq!(inspect(&stack, TOPIC, "rich").await, whole);
        assert_eq!(plain.as_object().map(serde_json::Map::len), Some(7), "nothing is added to {plain}");
        let text = stack.get("/v1/jobs/e2e/rich?include=request").await.body;
        let text = String::from_utf8_lossy(&text).into_owned();
        assert!(
            text.contains(r#""body":{"b": 1.0e5,  "a":"\u00e9"},"#),
            "the body is as it was sent: {text}"
        );
        let listed = |job: Value| json!([with(job, "host", "127.0.0.1:9")]);
        assert_eq!(stack.get("/v1/jobs?include=request").await.expect(200)["items"], listed(whole));
        assert_eq!(stack.get("/v1/jobs").await.expect(200)["items"], listed(plain));
        assert_eq!(stack.cancel(TOPIC, "rich").await.0, 200);
        assert_eq!(inspect(&stack, TOPIC, "rich").await, stack.job(TOPIC, "rich").await.1, "it has ended");
        assert_eq!(stack.get("/v1/jobs/e2e/nobody?include=request").await.status, 404);
    }
}

#[tokio::test]
async fn bodies_of_all_kinds_come_back_as_they_were_submitted() {
    for options in StackOptions::api_on_each_store() {
        let stack = options.start().await;
        for (id, fields) in [
            ("null", json!({"body": null})),
            ("binary", json!({"body_base64": "AP8nIg==", "content_type": "image/png"})),
            ("untyped", json!({"body_base64": "AP8nIg=="})),
            ("none", json!({})),
            ("large", json!({"body": "x".repeat(200_000)})),
            ("pull", json!({"url": null, "ttr": "7s", "headers": {"x-token": "1"}})),
        ] {
            let bare = json!({"topic": TOPIC, "id": id, "delay": "1h", "url": FAR});
            stack.accept(&with_all(bare, &fields)).await;
            let request = inspect(&stack, TOPIC, id).await["request"].clone();
            for name in ["body", "body_base64", "content_type", "ttr"] {
                assert_eq!(request.get(name), fields.get(name), "{id}: {name}");
            }
            assert_eq!(request.get("url").is_some(), id != "pull", "{id}");
        }
        let pull = inspect(&stack, TOPIC, "pull").await;
        assert_eq!(pull["request"]["headers"], json!({"x-token": "[masked by ringback]"}));
        assert_eq!(pull["effective"]["ttr"], json!({"from": "job", "value": "7s"}));
        let fields: Vec<_> = pull["effective"].as_object().expect("settings").keys().collect();
        assert_eq!(fields, ["retry", "ttr"], "nothing of a callback");
    }
}

#[tokio::test]
async fn what_applies_follows_the_policy_of_the_topic_and_its_changes() {
    for options in StackOptions::each_store() {
        let stack = options.retry("20s 40s").start().await;
        stack
            .accept(&json!({"topic": TOPIC, "id": "a", "delay": "1h", "url": FAR, "headers": {"x-b": "job"}}))
            .await;
        let effective = inspect(&stack, TOPIC, "a").await["effective"].clone();
        let retry = json!({"from": "installation", "delays": ["20s", "40s"], "max": 3, "jitter": 0.1});
        assert_eq!(effective["retry"], retry);
        assert_eq!(effective["timeout"], json!({"from": "default", "value": "10s"}));
        let policy = json!({"retry": {"delays": ["1s"], "max": -1}, "timeout": "3s", "expect_body": "ok",
            "headers": {"x-a": "topic", "x-b": "topic", "x-key": "hunter2"}, "headers_to": ["*"],
            "on_dead": "http://h/dead"});
        stack.set_policy(TOPIC, &policy).await;
        let expected = json!({
            "url": "http://127.0.0.1:9/hook?a=b%27c", "retry": {"from": "topic", "delays": ["1s"], "max": -1, "jitter": 0.1},
            "timeout": {"from": "topic", "value": "3s"}, "expect_body": "ok",
            "headers": {"x-a": "topic", "x-b": "job", "x-key": "[masked by ringback]"},
            "on_dead": {"from": "topic", "value": "http://h/dead"}});
        eventually(SOON, "the policy applies", async || {
            let effective = inspect(&stack, TOPIC, "a").await["effective"].clone();
            if effective == expected { Ok(()) } else { Err(effective) }
        })
        .await;
        let listed = stack.get("/v1/jobs?include=request&topic=e2e").await.expect(200);
        assert_eq!(listed["items"][0]["effective"], expected);
    }
}

#[tokio::test]
async fn the_url_that_applies_is_the_one_that_the_policy_had_at_the_submit() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        for path in ["/before", "/after"] {
            stack.set_policy(TOPIC, &json!({"url": sink.url(path)})).await;
            stack.accept(&json!({"topic": TOPIC, "id": path.trim_start_matches('/'), "delay": "1h"})).await;
        }
        for path in ["/before", "/after"] {
            let id = path.trim_start_matches('/');
            let effective = inspect(&stack, TOPIC, id).await["effective"].clone();
            assert_eq!(effective["url"], sink.url(path), "{id}");
            stack.run(TOPIC, id).await;
            assert_eq!(sink.wait_for_job(id, 1, SOON).await[0].path, path, "it is sent there");
        }
    }
}

#[tokio::test]
async fn dead_jobs_have_their_requests_too() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        sink.answer(Answer::status(410));
        for n in 0..5 {
            let id = format!("dead-{n}");
            stack.accept(&with(job(&sink, &id), "headers", json!({"cookie": "hunter2"}))).await;
            stack.wait_state(TOPIC, &id, "dead", SOON).await;
        }
        let plain = stack.get("/v1/topics/e2e/dead").await.expect(200);
        let whole = stack.pages("/v1/topics/e2e/dead?include=request&limit=2").await.concat();
        assert_eq!(whole.len(), 5);
        for (mut dead, plain) in whole.into_iter().zip(plain["items"].as_array().expect("items")) {
            let fields = dead.as_object_mut().expect("a job");
            let [request, effective] = ["request", "effective"].map(|name| fields.remove(name).expect(name));
            assert_eq!(&dead, plain);
            let shown = inspect(&stack, TOPIC, dead["id"].as_str().expect("an id")).await;
            assert_eq!((&request, &effective), (&shown["request"], &shown["effective"]));
            assert_eq!(request["headers"]["cookie"], "[masked by ringback]");
        }
    }
}

#[tokio::test]
async fn pages_of_large_jobs_are_bounded_and_complete() {
    for options in StackOptions::api_on_each_store() {
        let stack = options.start().await;
        let body = "x".repeat(200_000);
        let dead = |n| {
            json!({"topic": "dead", "id": format!("job-{n}"), "url": FAR, "body": body, "state": "dead",
                "reason": "lost"})
        };
        let waiting = |n| json!({"topic": "waiting", "id": format!("job-{n}"), "url": FAR, "delay": "1h", "body": body});
        for some in (0..40).collect::<Vec<_>>().chunks(10) {
            stack.import(&some.iter().map(dead).collect::<Vec<_>>()).await;
            let jobs: Vec<_> = some.iter().map(waiting).collect();
            assert_eq!(stack.batch(&jobs).await.1["accepted"], 10);
        }
        for path in ["/v1/topics/dead/dead?", "/v1/jobs?topic=waiting&"] {
            let (mut next, mut met, mut pages) = (String::new(), BTreeSet::new(), 0);
            loop {
                let reply = stack.get(&format!("{path}include=request&limit=1000{next}")).await;
                assert!(reply.body.len() < 6_000_000, "{path}: {} bytes", reply.body.len());
                let page = reply.expect(200);
                for job in page["items"].as_array().expect("items") {
                    assert_eq!(job["request"]["body"].as_str().map(str::len), Some(body.len()));
                    met.insert(job["id"].as_str().expect("an id").to_owned());
                }
                pages += 1;
                let Some(cursor) = page["next"].as_str() else { break };
                next = format!("&cursor={cursor}");
            }
            assert_eq!(met.len(), 40, "{path}");
            assert!(pages > 1, "{path}");
        }
        // Without their requests, the same jobs fit on one page.
        assert_eq!(
            stack.get("/v1/topics/dead/dead?limit=1000").await.expect(200)["items"].as_array().map(Vec::len),
            Some(40)
        );
    }
}

#[tokio::test]
async fn other_values_of_include_are_refused() {
    let stack = StackOptions::api_only().start().await;
    stack.accept(&json!({"topic": TOPIC, "id": "a", "delay": "1h", "url": FAR})).await;
    for path in ["/v1/jobs/e2e/a", "/v1/jobs", "/v1/topics/e2e/dead"] {
        for query in
            ["include=", "include=requests", "include=request,request", "include=request&include=request"]
        {
            let reply = stack.get(&format!("{path}?{query}")).await;
            let problem = reply.expect(422);
            assert_eq!(problem["errors"][0]["field"], "include", "{path}?{query}: {problem}");
        }
    }
    let problem = stack.get("/v1/jobs/e2e/a?include=attempts").await.expect(422);
    assert_eq!(problem["errors"][0]["detail"], "\"attempts\" cannot be included");
    assert_eq!(problem["errors"][0]["allowed"], "request; omit it for jobs without their requests");
}
