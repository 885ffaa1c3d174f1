//! Signing secrets at rest: sealed, useless without their master key, sealed again with a newer key, and in backups.

use ringback_testkit::{Arrival, Role};

use super::{INSTALLATION, KEY_1, SECRETS, add, listed, sealed, wait_signed_by};
use crate::cli::ringback;
use crate::prelude::*;
use crate::redis_layout::keys;

pub(super) const KEY_2: &str = "k2:MjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjI=";

/// Whether a text contains a secret, the installation's secret, or the master key.
fn is_shown(text: &str, secret: &str) -> bool {
    let key = KEY_1.split_once(':').expect("an id").1;
    [secret.trim_start_matches("whsec_"), INSTALLATION.trim_start_matches("whsec_"), key]
        .iter()
        .any(|part| text.contains(part.trim_end_matches('=')))
}

#[tokio::test]
async fn a_secret_is_shown_once_and_never_again() {
    for options in StackOptions::each_store() {
        let options =
            sealed(options).env("RINGBACK_SIGNING_SECRET", INSTALLATION).env("RINGBACK_LOG", "trace");
        let (stack, sink) = (options.start().await, Sink::start().await);
        let (id, secret) = add(&stack, &json!({})).await;
        stack.set_policy(TOPIC, &json!({"timeout": "5s"})).await;
        wait_signed_by(&stack, &sink, &[&secret, INSTALLATION]).await;
        for path in [SECRETS, "/v1/topics/e2e", "/v1/topics", "/v1/export/topics", "/v1/export", "/v1/stats"]
        {
            let body = stack.get(path).await.body;
            let body = String::from_utf8_lossy(&body);
            assert!(!is_shown(&body, &secret), "{path}: {body}");
        }
        let exported = stack.get("/v1/export/topics").await.json();
        assert_eq!(exported["policy"]["secrets"][0]["id"], id.as_str());
        assert!(
            exported["policy"]["secrets"][0]["sealed"].as_str().is_some_and(|text| text.starts_with("k1."))
        );
        for process in stack.processes() {
            assert!(!is_shown(&process.log(), &secret), "{}", process.log());
        }
        for role in [Role::Api, Role::Notifier, Role::Up] {
            let printed = stack.spec(role).arg("--print-config").command().output().expect("it prints");
            let printed = String::from_utf8_lossy(&printed.stdout).into_owned();
            assert!(printed.contains("RINGBACK_MASTER_KEYS=***"), "{printed}");
            assert!(!is_shown(&printed, &secret), "{printed}");
        }
    }
}

/// Asserts that a job waits at a notifier without the key, which logs `log`. Returns the delivery by one with the key.
pub(super) async fn delivered_only_with_the_key(stack: &mut Stack, sink: &Sink, log: &str) -> Arrival {
    stack.accept(&job(sink, "waits")).await;
    let spec = |stack: &Stack, keys| stack.spec(Role::Notifier).env("RINGBACK_MASTER_KEYS", keys);
    let (without, with) = (spec(stack, KEY_2), spec(stack, KEY_1));
    let mut notifier = without.start();
    notifier.ready(SOON).await;
    let waiting = eventually(SOON, "the job was tried and released", async || {
        let job = stack.job(TOPIC, "waits").await.1;
        if job["attempts"].as_u64() >= Some(1) && job["state"] != "reserved" { Ok(job) } else { Err(job) }
    })
    .await;
    assert_eq!((&waiting["failures"], sink.seen()), (&json!(0), 0), "{waiting}");
    assert!(notifier.log().contains(log), "{}", notifier.log());
    drop(notifier);
    let mut notifier = with.start();
    notifier.ready(SOON).await;
    stack.notifiers.push(notifier);
    sink.wait_for_job("waits", 1, SOON).await.remove(0)
}

#[tokio::test]
async fn without_its_key_a_callback_waits_and_is_not_sent_unsigned() {
    let options = sealed(Stack::options()).count(Role::Notifier, 0);
    let (mut stack, sink) = (options.start().await, Sink::start().await);
    let (_, secret) = add(&stack, &json!({})).await;
    let arrival =
        delivered_only_with_the_key(&mut stack, &sink, "a secret of a topic cannot be opened").await;
    assert!(super::is_signed_by(&arrival, &[&secret]));
}

#[tokio::test]
async fn secrets_are_sealed_again_with_the_first_key() {
    for options in StackOptions::each_store() {
        let both = format!("{KEY_2},{KEY_1}");
        let (mut stack, sink) = (sealed(options).start().await, Sink::start().await);
        let (_, one) = add(&stack, &json!({})).await;
        let (_, two) = add(&stack, &json!({})).await;
        let keys = async |stack: &Stack| -> Vec<Value> {
            let items = stack.get(SECRETS).await.expect(200)["items"].clone();
            items.as_array().expect("items").iter().map(|item| item["master_key"].clone()).collect()
        };
        assert_eq!(keys(&stack).await, ["k1", "k1"]);
        restart_all(&mut stack, &both).await;
        eventually(SOON, "the new key seals them", async || match keys(&stack).await {
            keys if keys == ["k2", "k2"] => Ok(()),
            keys => Err(Value::from(keys)),
        })
        .await;
        restart_all(&mut stack, KEY_2).await;
        wait_signed_by(&stack, &sink, &[&two, &one]).await;
    }
}

/// Restarts APIs, notifiers and `ringback up` with these master keys, and waits until each is ready.
pub(super) async fn restart_all(stack: &mut Stack, keys: &str) {
    for process in stack.apis.iter_mut().chain(&mut stack.notifiers).chain(&mut stack.ups) {
        process.set_env("RINGBACK_MASTER_KEYS", keys);
        process.restart();
        process.ready(SOON).await;
    }
}

#[tokio::test]
async fn a_backup_has_secrets_sealed_and_is_restored_where_their_key_is() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("backup");
    let from = sealed(Stack::options()).start().await;
    from.set_policy(TOPIC, &json!({"timeout": "5s"})).await;
    let (id, secret) = add(&from, &json!({})).await;
    let file = file.to_str().expect("UTF-8");
    run(&from, &["backup", file], true).await;
    let text = std::fs::read(file).expect("a backup");
    assert!(!is_shown(&String::from_utf8_lossy(&text), &secret));

    let other = StackOptions::api_only().env("RINGBACK_MASTER_KEYS", KEY_2).start().await;
    let output = run(&other, &["restore", file], false).await;
    assert!(output.contains("sealed with the master key k1, which this process does not have"), "{output}");
    assert_eq!(listed(&other).await, []);

    run(&other, &["restore", file, "--without-secrets"], true).await;
    assert_eq!(
        (listed(&other).await, other.topic(TOPIC).await["policy"]["timeout"].clone()),
        (vec![], json!("5s"))
    );

    for options in StackOptions::each_store() {
        let (to, sink) = (sealed(options).start().await, Sink::start().await);
        run(&to, &["restore", file], true).await;
        assert_eq!(listed(&to).await, [(id.clone(), Value::Null)]);
        wait_signed_by(&to, &sink, &[&secret]).await;
        run(&to, &["restore", file], true).await;
    }
}

#[tokio::test]
async fn a_restore_sends_no_job_unsigned_that_was_signed() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("backup");
    let file = file.to_str().expect("UTF-8");
    let sink = Sink::start().await;
    let from = sealed(StackOptions::api_only()).start().await;
    from.set_policy(TOPIC, &json!({"timeout": "5s"})).await;
    let (id, secret) = add(&from, &json!({})).await;
    from.accept(&job(&sink, "signed")).await;
    run(&from, &["backup", file], true).await;

    let to = sealed(Stack::options()).start().await;
    to.set_policy(TOPIC, &json!({"timeout": "6s"})).await;
    let output = run(&to, &["restore", file], false).await;
    assert!(output.contains("no signing secrets") && output.contains("ringback secret add"), "{output}");
    assert_eq!((to.job(TOPIC, "signed").await.0, sink.seen()), (404, 0));
    // The same policy without its secrets gets them from the backup.
    to.set_policy(TOPIC, &json!({"timeout": "5s"})).await;
    run(&to, &["restore", file], true).await;
    assert_eq!(listed(&to).await, [(id, Value::Null)]);
    assert!(super::is_signed_by(&sink.wait_for_job("signed", 1, SOON).await.remove(0), &[&secret]));
}

#[tokio::test]
async fn callbacks_of_a_topic_whose_policy_cannot_be_read_wait() {
    let (stack, sink) = (sealed(Stack::options()).start().await, Sink::start().await);
    let (_, secret) = add(&stack, &json!({})).await;
    wait_signed_by(&stack, &sink, &[&secret]).await;
    let mut redis = stack.redis().client().await;
    let keys: Vec<String> = keys::all(&mut redis, "policies").await;
    let mut set = redis::cmd("HSET");
    set.arg(&keys).arg(TOPIC).arg(r#"{"a field of a later version":1}"#);
    set.exec_async(&mut redis).await.expect("HSET");
    // This call publishes that policies have changed.
    stack.set_policy("other", &json!({})).await;
    stack.notifiers[0].wait_log("cannot be read, so its callbacks wait", SOON).await;
    let seen = sink.seen();
    stack.accept(&job(&sink, "waits")).await;
    eventually(SOON, "the job was tried and released", async || {
        let job = stack.job(TOPIC, "waits").await.1;
        if job["attempts"].as_u64() >= Some(1) && job["state"] != "reserved" { Ok(job) } else { Err(job) }
    })
    .await;
    assert_eq!(sink.seen(), seen, "nothing is sent unsigned");
    stack.put("/v1/topics/e2e", &json!({"timeout": "5s"})).await.refused(409, "\"secrets\":[]");
    // An export without it would not be complete.
    stack.get("/v1/export/topics").await.expect(503);
    let masked =
        json!({"headers": {"authorization": "[masked by ringback]"}, "headers_to": ["*"], "secrets": []});
    stack.put("/v1/topics/e2e", &masked).await.expect(422);
    stack.put("/v1/topics/e2e", &json!({"timeout": "5s", "secrets": []})).await.expect(200);
    let arrival = sink.wait_for_job("waits", 1, SOON).await.remove(0);
    assert_eq!(arrival.header("webhook-signature"), None);
}

#[tokio::test]
async fn a_sealed_secret_is_of_use_for_its_topic_alone() {
    let stack = sealed(StackOptions::api_only()).start().await;
    add(&stack, &json!({})).await;
    let policy = stack.get("/v1/export/topics").await.json()["policy"].clone();
    let problem = stack.put("/v1/topics/other", &policy).await.expect(422);
    assert_eq!(problem["errors"][0]["field"], "secrets", "{problem}");
    assert_eq!(stack.put("/v1/topics/e2e", &policy).await.status, 200);
    assert_eq!(listed(&stack).await.len(), 1);
    // Expired secrets also replace the others, and are dropped.
    let mut expired = policy.clone();
    expired["secrets"][0]["until"] = json!("2020-01-01T00:00:00Z");
    stack.put("/v1/topics/e2e", &expired).await.expect(200);
    assert_eq!(listed(&stack).await, []);
    add(&stack, &json!({})).await;
    stack.put("/v1/topics/e2e", &json!({"secrets": []})).await.expect(200);
    assert_eq!(listed(&stack).await, []);
}

#[tokio::test]
async fn one_process_makes_a_key_of_its_own_beside_its_store() {
    let (mut stack, sink) = (StackOptions::embedded().start().await, Sink::start().await);
    let (_, secret) = add(&stack, &json!({})).await;
    wait_signed_by(&stack, &sink, &[&secret]).await;
    stack.ups[0].restart();
    stack.ups[0].ready(SOON).await;
    wait_signed_by(&stack, &sink, &[&secret]).await;
}

/// Runs the command line, asserts whether it succeeds, and returns what it printed on both outputs.
pub(super) async fn run(stack: &Stack, words: &[&str], succeeds: bool) -> String {
    let run = ringback(&stack.url(""), words).await;
    assert_eq!(run.code == Some(0), succeeds, "{run:?}");
    run.out + &run.err
}
