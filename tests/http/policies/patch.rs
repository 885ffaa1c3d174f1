//! `PATCH` of a policy changes only the named fields, and `PUT` of a policy reports which fields it has dropped.

use bytes::Bytes;
use http::Method;
use ringback_core::job::MASK;

use crate::prelude::*;

const PATH: &str = "/v1/topics/e2e";

#[tokio::test]
async fn a_patch_changes_what_it_names_and_a_put_says_what_it_drops() {
    for options in StackOptions::api_on_each_store() {
        let stack = options.start().await;
        let patch = async |change: Value| stack.patch(PATH, &change).await;
        let steps = [
            (json!({"expect_body": "ok"}), 201, json!({"expect_body": "ok"})),
            (json!({"timeout": "5s"}), 200, json!({"timeout": "5s", "expect_body": "ok"})),
            (json!({}), 200, json!({"timeout": "5s", "expect_body": "ok"})),
            (
                json!({"retry": {"delays": ["1s"], "max": 3}}),
                200,
                json!({"retry": {"delays": ["1s"], "max": 3}, "timeout": "5s", "expect_body": "ok"}),
            ),
            (
                json!({"retry": {"preset": "none"}, "timeout": null}),
                200,
                json!({"retry": {"preset": "none"}, "expect_body": "ok"}),
            ),
        ];
        for (change, status, policy) in steps {
            let reply = patch(change.clone()).await;
            assert_eq!((reply.status, &reply.json()["policy"]), (status, &policy), "{change}");
            assert_eq!(stack.topic(TOPIC).await["policy"], policy, "{change}");
        }
        let reply = patch(json!({"expect_body": null})).await.expect(200);
        assert_eq!(reply["dropped"], json!(["expect_body"]));
        patch(json!({"expect_body": "ok"})).await.expect(200);
        let put = stack.put(PATH, &json!({"timeout": "6s"})).await.expect(200);
        assert_eq!(put["dropped"], json!(["retry", "expect_body"]));
        let again = stack.put(PATH, &json!({"timeout": "7s"})).await.expect(200);
        assert_eq!(again.get("dropped"), None, "{again}");

        for (wrong, field) in [
            (json!({"timeout": "11m"}), "timeout"),
            (json!({"time_out": "5s"}), "time_out"),
            (json!({"secrets": []}), "secrets"),
            (json!({"credentials": "nobodys"}), "credentials"),
        ] {
            let refused = patch(wrong.clone()).await.expect(422);
            assert_eq!(refused["errors"][0]["field"], field, "{wrong}");
        }
        assert_eq!(stack.topic(TOPIC).await["policy"], json!({"timeout": "7s"}));
        patch(json!({"timeout": null})).await.expect(200);
        assert_eq!(stack.topic(TOPIC).await["policy"], json!({}));
    }
}

#[tokio::test]
async fn a_patch_keeps_secret_headers_and_signing_secrets() {
    for options in StackOptions::api_on_each_store() {
        let key = "k1:MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE=";
        let stack = options.env("RINGBACK_MASTER_KEYS", key).start().await;
        let policy =
            json!({"headers": {"X-Token": "hunter2", "x-a": "1"}, "headers_to": ["https://a.example"]});
        stack.set_policy(TOPIC, &policy).await;
        let secret = stack.post("/v1/topics/e2e/secrets", &json!({})).await.expect(201);
        let values = async || {
            let lines = stack.get("/v1/export/topics").await;
            String::from_utf8_lossy(&lines.body).into_owned()
        };
        assert!(!values().await.contains("hunter2"), "it is sealed");
        let changed = stack.patch(PATH, &json!({"headers": {"x-a": null, "x-b": "2"}})).await.expect(200);
        let headers = json!({"X-Token": MASK, "x-b": "2"});
        assert_eq!(changed["policy"], json!({"headers": headers, "headers_to": ["https://a.example"]}));
        let left = stack.get("/v1/topics/e2e/secrets").await.expect(200);
        assert_eq!(left["items"][0]["id"], secret["id"], "{left}");
        // The value that is kept goes to no other origin.
        let refused = stack.patch(PATH, &json!({"headers_to": ["https://evil.example"]})).await.expect(422);
        assert_eq!(refused["errors"][0]["field"], "headers_to", "{refused}");
        stack.patch(PATH, &json!({"headers": {"x-token": null}, "headers_to": ["*"]})).await.expect(200);
        assert_eq!(stack.topic(TOPIC).await["policy"], json!({"headers": {"x-b": "2"}, "headers_to": ["*"]}));
    }
}

#[tokio::test]
async fn a_patch_may_say_that_it_is_one() {
    let stack = StackOptions::api_only().start().await;
    for (kind, status) in [
        ("application/merge-patch+json", 201),
        ("application/json", 200),
        ("application/json-patch+json", 415),
        ("text/plain", 415),
    ] {
        let body = Bytes::from_static(br#"{"timeout":"5s"}"#);
        let reply = stack.request(Method::PATCH, PATH, Some((kind, body))).await;
        assert_eq!(reply.status, status, "{kind}");
    }
}
