//! Secret header values of policies: sealed at rest, useless without their master key, sealed anew, and in backups.

use ringback_testkit::Role;

use super::sealing::{KEY_2, delivered_only_with_the_key, restart_all, run};
use super::{KEY_1, sealed};
use crate::prelude::*;

const VALUE: &str = "Bearer canary-of-a-header";
const MASK: &str = "[masked by ringback]";

fn policy(value: &str) -> Value {
    json!({"headers": {"authorization": value, "x-a": "1"}, "headers_to": ["*"]})
}

/// The policy as exported. Asserts that the secret is not in it.
async fn exported(stack: &Stack) -> Value {
    let exported = stack.get("/v1/export/topics").await.json()["policy"].clone();
    assert!(!exported.to_string().contains("canary"), "{exported}");
    exported
}

/// The id of the master key that has sealed the headers; `None` if they are not sealed.
fn key_of(policy: &Value) -> Option<&str> {
    policy["sealed_headers"].as_str()?.split('.').next()
}

/// The `authorization` that a job is delivered with, a second after its submit, when notifiers know the policy.
async fn delivered(stack: &Stack, sink: &Sink, id: &str) -> Option<String> {
    // A notifier knows a policy within a second.
    stack.accept(&with(job(sink, id), "delay", "1s")).await;
    let arrival = sink.wait_for_job(id, 1, SOON).await.remove(0);
    assert_eq!(arrival.header("x-a"), Some("1"));
    arrival.header("authorization").map(str::to_owned)
}

#[tokio::test]
async fn a_secret_header_is_stored_sealed_and_sent_as_it_was_put() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (sealed(options).start().await, Sink::start().await);
        stack.set_policy(TOPIC, &policy(VALUE)).await;
        let first = exported(&stack).await;
        assert_eq!(
            (key_of(&first), &first["headers"]),
            (Some("k1"), &json!({"authorization": MASK, "x-a": "1"}))
        );
        let shown = stack.topic(TOPIC).await["policy"].clone();
        assert_eq!(shown, policy(MASK), "the sealed values are not shown");
        assert_eq!(delivered(&stack, &sink, "first").await.as_deref(), Some(VALUE));

        // The mask keeps the value beside another change.
        let mut kept = policy(MASK);
        kept["timeout"] = json!("5s");
        stack.set_policy(TOPIC, &kept).await;
        assert_eq!(exported(&stack).await["timeout"], "5s");
        assert_eq!(delivered(&stack, &sink, "kept").await.as_deref(), Some(VALUE));
        stack.set_policy(TOPIC, &policy("another")).await;
        assert_eq!(delivered(&stack, &sink, "another").await.as_deref(), Some("another"));

        // Exported sealed headers can be put back, but only for their topic and origins.
        stack.set_policy(TOPIC, &first).await;
        assert_eq!(delivered(&stack, &sink, "back").await.as_deref(), Some(VALUE));
        let mut elsewhere = first.clone();
        elsewhere["headers_to"] = json!(["https://evil.example"]);
        for (path, policy) in [("/v1/topics/other", &first), ("/v1/topics/e2e", &elsewhere)] {
            let problem = stack.put(path, policy).await.expect(422);
            assert_eq!(problem["errors"][0]["field"], "sealed_headers", "{problem}");
        }
        stack.set_policy(TOPIC, &json!({"headers": {"x-a": "1"}})).await;
        assert_eq!(exported(&stack).await, json!({"headers": {"x-a": "1"}}));
    }
}

#[tokio::test]
async fn without_the_key_of_its_headers_a_callback_waits() {
    let options = sealed(Stack::options()).count(Role::Notifier, 0);
    let (mut stack, sink) = (options.start().await, Sink::start().await);
    stack.set_policy(TOPIC, &policy(VALUE)).await;
    let log = "the secret headers of a topic cannot be opened";
    let arrival = delivered_only_with_the_key(&mut stack, &sink, log).await;
    assert_eq!(arrival.header("authorization"), Some(VALUE));
}

#[tokio::test]
async fn headers_from_before_there_was_a_key_are_sealed_and_those_of_an_older_key_again() {
    let (mut stack, sink) = (Stack::options().start().await, Sink::start().await);
    stack.set_policy(TOPIC, &policy(VALUE)).await;
    let stored = stack.get("/v1/export/topics").await.json()["policy"].clone();
    assert_eq!(stored, policy(VALUE), "there is no key");
    for (keys, id) in [(KEY_1.to_owned(), "k1"), (format!("{KEY_2},{KEY_1}"), "k2")] {
        restart_all(&mut stack, &keys).await;
        stack.wait_get("/v1/export/topics", SOON, |topics| key_of(&topics["policy"]) == Some(id)).await;
        exported(&stack).await;
        assert_eq!(delivered(&stack, &sink, id).await.as_deref(), Some(VALUE));
    }
}

#[tokio::test]
async fn a_backup_has_secret_headers_sealed_and_is_restored_where_their_key_is() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("backup");
    let file = file.to_str().expect("UTF-8");
    let from = sealed(StackOptions::api_only()).start().await;
    from.set_policy(TOPIC, &policy(VALUE)).await;
    run(&from, &["backup", file], true).await;
    assert!(!std::fs::read_to_string(file).expect("a backup").contains("canary"));

    let other = StackOptions::api_only().env("RINGBACK_MASTER_KEYS", KEY_2).start().await;
    let output = run(&other, &["restore", file], false).await;
    assert!(output.contains("sealed with the master key k1, which this process does not have"), "{output}");
    run(&other, &["restore", file, "--without-secrets"], true).await;
    assert_eq!(exported(&other).await, json!({"headers": {"x-a": "1"}, "headers_to": ["*"]}));

    for options in StackOptions::each_store() {
        let (to, sink) = (sealed(options).start().await, Sink::start().await);
        for _ in 0..2 {
            run(&to, &["restore", file], true).await;
        }
        assert_eq!(delivered(&to, &sink, "restored").await.as_deref(), Some(VALUE));
        // Sealed once more it is the same.
        to.set_policy(TOPIC, &policy(MASK)).await;
        run(&to, &["restore", file], true).await;
    }
}
