//! Credentials of callbacks: they go only to the origins that they name, and their secrets are shown nowhere, sealed
//! at rest, and kept in backups.

use ringback_testkit::{Reply, Role};

use super::sealing::{KEY_2, delivered_only_with_the_key, restart_all, run};
use super::{KEY_1, sealed};
use crate::prelude::*;

const BANK: &str = "/v1/credentials/bank";
const TOKEN: &str = "canary-of-a-token";

fn bearer(sink: &Sink) -> Value {
    json!({"to": [sink.url("")], "bearer": TOKEN})
}

async fn put(stack: &Stack, credential: &Value) -> Reply {
    stack.put(BANK, credential).await
}

/// Sets a credential for the receiver, and a policy that refers to it.
async fn furnish(stack: &Stack, sink: &Sink) {
    put(stack, &bearer(sink)).await.expect(201);
    stack.set_policy(TOPIC, &json!({"credentials": "bank"})).await;
}

/// The `authorization` that a job is delivered with, a second after its submit, when notifiers know the credential.
async fn delivered(stack: &Stack, sink: &Sink, id: &str) -> Option<String> {
    stack.accept(&with(job(sink, id), "delay", "1s")).await;
    sink.wait_for_job(id, 1, SOON).await.remove(0).header("authorization").map(str::to_owned)
}

fn bank_of(list: &Value) -> &Value {
    &list["items"][0]
}

#[tokio::test]
async fn a_credential_goes_to_the_origins_that_it_names_and_is_never_shown() {
    for options in StackOptions::each_store() {
        let options = sealed(options).env("RINGBACK_LOG", "trace");
        let (stack, sink, other) = (options.start().await, Sink::start().await, Sink::start().await);
        furnish(&stack, &sink).await;
        assert_eq!(delivered(&stack, &sink, "bearer").await, Some(format!("Bearer {TOKEN}")));
        assert_eq!(delivered(&stack, &other, "elsewhere").await, None);
        let own = with(job(&sink, "own"), "headers", json!({"authorization": "its own"}));
        stack.accept(&own).await;
        let arrival = sink.wait_for_job("own", 1, SOON).await.remove(0);
        assert_eq!(arrival.header("authorization"), Some("its own"));

        let basic =
            json!({"to": [sink.url(""), other.url("")], "basic": {"user": "u", "password": "canary:p"}});
        let shown = put(&stack, &basic).await.expect(200);
        assert_eq!((&shown["name"], &shown["kinds"]), (&json!("bank"), &json!(["basic"])));
        for (sink, id) in [(&sink, "basic"), (&other, "basic-elsewhere")] {
            let value = delivered(&stack, sink, id).await;
            assert_eq!(value.as_deref(), Some("Basic dTpjYW5hcnk6cA=="));
        }
        for path in ["/v1/credentials", "/v1/export/credentials", "/v1/export/topics", "/v1/topics/e2e"] {
            let body = String::from_utf8(stack.get(path).await.body.to_vec()).expect("UTF-8");
            assert!(body.contains("bank") && !body.contains("canary"), "{path}: {body}");
        }
        for process in stack.processes() {
            assert!(!process.log().contains("canary"), "{}", process.log());
        }

        stack.delete(BANK).await.refused(409, "topic e2e");
        stack.set_policy(TOPIC, &json!({})).await;
        assert_eq!(stack.delete(BANK).await.expect(200)["items"], json!([]));
        stack.delete(BANK).await.expect(404);
        assert_eq!(delivered(&stack, &sink, "without").await, None);
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_credential_is_said_without_showing_it() {
    let stack = StackOptions::api_only().start().await;
    let refused = put(&stack, &json!({"to": ["https://b.example"], "bearer": TOKEN})).await;
    refused.refused(409, "RINGBACK_MASTER_KEYS");
    let stack = sealed(StackOptions::api_only()).start().await;
    let key = include_str!("../../tls/caller.key");
    let (certificate, stranger) =
        (include_str!("../../tls/caller.pem"), include_str!("../../tls/stranger.pem"));
    for (credential, field) in [
        (json!({"certificate": "canary", "key": key}), "certificate"),
        (json!({"certificate": certificate, "key": "canary"}), "key"),
        (json!({"certificate": stranger, "key": key}), "key"),
        (json!({"ca": "canary"}), "ca"),
        (json!({"bearer": "canary canary"}), "bearer"),
        (json!({"sealed": "k1.canary"}), "sealed"),
    ] {
        let mut credential = credential;
        credential["to"] = json!(["https://b.example"]);
        let problem = put(&stack, &credential).await.expect(422);
        assert_eq!(problem["errors"][0]["field"], field, "{problem}");
        let text = problem.to_string();
        assert!(!text.contains("canary") && !text.contains("PRIVATE"), "{problem}");
    }
    let problem = stack.put("/v1/topics/e2e", &json!({"credentials": "bank"})).await.expect(422);
    assert_eq!(problem["errors"][0]["field"], "credentials", "{problem}");
    assert_eq!(stack.get("/v1/credentials").await.expect(200)["items"], json!([]));
}

#[tokio::test]
async fn without_the_key_of_its_credential_a_callback_waits() {
    let options = sealed(Stack::options()).count(Role::Notifier, 0);
    let (mut stack, sink) = (options.start().await, Sink::start().await);
    furnish(&stack, &sink).await;
    let log = "the credential of a topic cannot be opened";
    let arrival = delivered_only_with_the_key(&mut stack, &sink, log).await;
    assert_eq!(arrival.header("authorization"), Some(&*format!("Bearer {TOKEN}")));
}

#[tokio::test]
async fn a_credential_is_sealed_again_with_the_first_key() {
    for options in StackOptions::each_store() {
        let (mut stack, sink) = (sealed(options).start().await, Sink::start().await);
        furnish(&stack, &sink).await;
        assert_eq!(bank_of(&stack.get("/v1/credentials").await.expect(200))["master_key"], "k1");
        restart_all(&mut stack, &format!("{KEY_2},{KEY_1}")).await;
        stack.wait_get("/v1/credentials", SOON, |list| bank_of(list)["master_key"] == "k2").await;
        restart_all(&mut stack, KEY_2).await;
        assert_eq!(delivered(&stack, &sink, "again").await, Some(format!("Bearer {TOKEN}")));
    }
}

#[tokio::test]
async fn a_backup_has_credentials_sealed_and_they_are_restored_before_the_policies_that_need_them() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("backup");
    let file = file.to_str().expect("UTF-8");
    let sink = Sink::start().await;
    let from = sealed(StackOptions::api_only()).start().await;
    furnish(&from, &sink).await;
    from.accept(&job(&sink, "due")).await;
    run(&from, &["backup", file], true).await;
    let text = std::fs::read_to_string(file).expect("a backup");
    assert!(text.contains("\"kind\":\"credential\"") && !text.contains("canary"), "{text}");

    let other = StackOptions::api_only().env("RINGBACK_MASTER_KEYS", KEY_2).start().await;
    let output = run(&other, &["restore", file], false).await;
    assert!(output.contains("credential bank") && output.contains("--without-secrets"), "{output}");
    run(&other, &["restore", file, "--without-secrets"], true).await;
    assert_eq!(other.get("/v1/credentials").await.expect(200)["items"], json!([]));

    for options in StackOptions::each_store() {
        let to = sealed(options).start().await;
        let seen = sink.arrivals_of("due").len();
        for _ in 0..2 {
            run(&to, &["restore", file], true).await;
        }
        let arrival = sink.wait_for_job("due", seen + 1, SOON).await.remove(seen);
        assert_eq!(arrival.header("authorization"), Some(&*format!("Bearer {TOKEN}")));
        // Another credential of this name stays.
        put(&to, &json!({"to": ["https://b.example"], "bearer": "other"})).await.expect(200);
        let output = run(&to, &["restore", file], false).await;
        assert!(output.contains("credential bank has other origins here"), "{output}");
    }
}
