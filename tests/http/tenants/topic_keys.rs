//! Keys for some topics of a tenant: they put no credential into use, and refusals name no other topic.

use http::Method;

use super::{ALL, Caller, ROOT, stacks};
use crate::prelude::*;

#[tokio::test]
async fn a_key_for_some_topics_keeps_a_credential_and_puts_none_into_use() {
    for options in stacks() {
        let stack = options.start().await;
        let all = Caller::with(&stack, &json!({"tenant": "acme", "scopes": ALL})).await;
        let some =
            Caller::with(&stack, &json!({"tenant": "acme", "scopes": ALL, "topics": ["t", "v"]})).await;
        let credential = json!({"to": ["https://b.example"], "bearer": "t"});
        for name in ["used", "others"] {
            let path = format!("/v1/credentials/{name}");
            all.send(&stack, Method::PUT, &path, Some(&credential)).await.expect(201);
        }
        all.send(&stack, Method::PUT, "/v1/topics/t", Some(&json!({"credentials": "used"})))
            .await
            .expect(201);
        for method in [Method::PUT, Method::PATCH] {
            // An unknown credential is refused like an existing one of others.
            for (topic, name) in [("t", "others"), ("t", "nobodys"), ("v", "used"), ("v", "nobodys")] {
                let policy = json!({"credentials": name, "timeout": "5s"});
                let path = format!("/v1/topics/{topic}");
                let refused = some.send(&stack, method.clone(), &path, Some(&policy)).await.expect(422);
                assert_eq!(refused["errors"][0]["field"], "credentials", "{refused}");
                assert!(refused["errors"][0]["detail"].as_str().expect("a text").contains("some topics"));
            }
            let kept = json!({"credentials": "used", "timeout": "5s"});
            some.send(&stack, method, "/v1/topics/t", Some(&kept)).await.expect(200);
        }
        let changed = some.send(&stack, Method::PATCH, "/v1/topics/t", Some(&json!({"timeout": "6s"}))).await;
        assert_eq!(changed.expect(200)["policy"], json!({"credentials": "used", "timeout": "6s"}));
        // The key cannot put back a credential that it has removed.
        some.send(&stack, Method::PUT, "/v1/topics/t", Some(&json!({}))).await.expect(200);
        some.send(&stack, Method::PATCH, "/v1/topics/t", Some(&json!({"credentials": "used"})))
            .await
            .expect(422);
    }
}

#[tokio::test]
async fn what_a_key_for_some_topics_is_refused_names_no_other_topic() {
    let stack = StackOptions::api_only().env("RINGBACK_ROOT_KEY", ROOT).unchecked().start().await;
    let all = Caller::of(&stack, "acme").await;
    let some = Caller::with(&stack, &json!({"tenant": "acme", "scopes": ALL, "topics": ["t"]})).await;
    let schedule = |topic: &str| json!({"every": "7d", "job": {"topic": topic, "url": "https://h.example/"}});
    all.send(&stack, Method::PUT, "/v1/schedules/s", Some(&schedule("hidden"))).await.expect(201);
    all.post(&stack, "/v1/jobs", &json!({"topic": "hidden"})).await.expect(201);
    let reserved = all.post(&stack, "/v1/topics/hidden/reserve", &json!({"wait": "5s"})).await.expect(200);
    let receipt = reserved["jobs"][0]["receipt"].as_str().expect("a receipt").to_owned();
    let one = format!("/v1/receipts/{receipt}/finish");
    for (method, path, body) in [
        (Method::POST, one.as_str(), json!({})),
        (Method::POST, "/v1/receipts/finish", json!({"receipts": [receipt]})),
        (Method::PUT, "/v1/schedules/s", schedule("t")),
        (Method::GET, "/v1/schedules/s", Value::Null),
        (Method::GET, "/v1/schedules/s/next", Value::Null),
        (Method::POST, "/v1/schedules/s/run", json!({})),
        (Method::DELETE, "/v1/schedules/s", Value::Null),
    ] {
        let body = Some(&body).filter(|body| !body.is_null());
        let reply = some.send(&stack, method.clone(), path, body).await;
        let text = String::from_utf8_lossy(&reply.body).into_owned();
        assert!(reply.status >= 400 && !text.contains("hidden"), "{method} {path}: {} {text}", reply.status);
    }
}
