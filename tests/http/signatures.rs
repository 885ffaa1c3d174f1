//! Signatures of callbacks and notices by the secrets of a topic and of the installation, with and without secrets,
//! and wrong requests about secrets. The files below have rotations, sealing and credentials.

mod credentials;
mod packages;
mod rotation;
mod sealed_headers;
mod sealing;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use ringback_testkit::Arrival;
use sha2::Sha256;

use crate::prelude::*;

const SECRETS: &str = "/v1/topics/e2e/secrets";
const NOTICES: [&str; 2] = ["ringback.on-dead", "ringback.on-done"];
const INSTALLATION: &str = "whsec_aW5zdGFsbGF0aW9uIHNlY3JldCBvZiB0ZXN0cw==";
const KEY_1: &str = "k1:MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE=";

fn sealed(options: StackOptions) -> StackOptions {
    options.env("RINGBACK_MASTER_KEYS", KEY_1)
}

/// Adds a secret to the usual topic. Returns its id and the secret.
async fn add(stack: &Stack, ask: &Value) -> (String, String) {
    let created = stack.post(SECRETS, ask).await.expect(201);
    let text = |name: &str| created[name].as_str().expect("a text").to_owned();
    (text("id"), text("secret"))
}

/// The ids of the secrets that sign, each with the time until which it does.
async fn listed(stack: &Stack) -> Vec<(String, Value)> {
    let items = stack.get(SECRETS).await.expect(200)["items"].clone();
    let of = |item: &Value| (item["id"].as_str().expect("an id").to_owned(), item["until"].clone());
    items.as_array().expect("items").iter().map(of).collect()
}

/// The signature of an arrival by a secret, computed as the specification says.
fn signature(arrival: &Arrival, secret: &str, prefix: &str) -> String {
    let header = |name: &str| arrival.header(&format!("{prefix}-{name}")).expect("a header").to_owned();
    let key = STANDARD.decode(secret.strip_prefix("whsec_").expect("a secret")).expect("base64");
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("any length");
    mac.update(format!("{}.{}.", header("id"), header("timestamp")).as_bytes());
    mac.update(&arrival.body);
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

/// Whether an arrival is signed by exactly these secrets, in this order.
pub(super) fn is_signed_by(arrival: &Arrival, secrets: &[&str]) -> bool {
    let expected: Vec<_> = secrets.iter().map(|secret| signature(arrival, secret, "webhook")).collect();
    arrival.header("webhook-signature").unwrap_or_default() == expected.join(" ")
}

/// Submits jobs until one arrives that exactly these secrets have signed, and returns its arrival.
async fn wait_signed_by(stack: &Stack, sink: &Sink, secrets: &[&str]) -> Arrival {
    eventually(SOON, &format!("{} secrets sign", secrets.len()), async || {
        let id = format!("signed-{}", sink.seen());
        let bytes =
            json!({"topic": TOPIC, "id": id, "url": sink.url("/hook"), "body_base64": "AAECgICA/wo="});
        stack.accept(&bytes).await;
        let arrival = sink.wait_for_job(&id, 1, SOON).await.remove(0);
        let has = arrival.header("webhook-signature").unwrap_or_default().to_owned();
        if is_signed_by(&arrival, secrets) { Ok(arrival) } else { Err(has) }
    })
    .await
}

#[tokio::test]
async fn callbacks_are_signed_by_the_secrets_of_their_topic_and_of_the_installation() {
    for options in StackOptions::each_store() {
        let options = sealed(options).env("RINGBACK_SIGNING_SECRET", INSTALLATION);
        let (stack, sink) = (options.start().await, Sink::start().await);
        wait_signed_by(&stack, &sink, &[INSTALLATION]).await;
        let (first, one) = add(&stack, &json!({})).await;
        wait_signed_by(&stack, &sink, &[&one, INSTALLATION]).await;
        let (second, two) = add(&stack, &json!({"keep": "1h"})).await;
        wait_signed_by(&stack, &sink, &[&two, &one, INSTALLATION]).await;
        let items = listed(&stack).await;
        assert_eq!((&items[0], &items[1].0, items.len()), (&(second.clone(), Value::Null), &first, 2));
        assert!(items[1].1.is_string(), "{items:?}");

        // The policy is put and put again, and the secrets stay.
        stack.set_policy(TOPIC, &json!({"headers": {"x-a": "1"}})).await;
        stack.set_policy(TOPIC, &json!({})).await;
        assert_eq!(listed(&stack).await, items);
        assert_eq!(stack.topic(TOPIC).await["policy"], json!({}), "an answer does not show them");

        let path = format!("{SECRETS}/{second}");
        let left = stack.delete(&path).await.expect(200);
        assert_eq!(
            (left["items"][0]["id"].as_str(), &left["items"][0]["until"]),
            (Some(&*first), &Value::Null)
        );
        wait_signed_by(&stack, &sink, &[&one, INSTALLATION]).await;
        stack.delete(&path).await.expect(404);
        stack.delete(&format!("{SECRETS}/{first}")).await.expect(200);
        wait_signed_by(&stack, &sink, &[INSTALLATION]).await;
    }
}

#[tokio::test]
async fn each_attempt_is_signed_with_its_own_time() {
    let (stack, sink) = (sealed(Stack::options()).retry("1s").start().await, Sink::start().await);
    let (_, secret) = add(&stack, &json!({})).await;
    wait_signed_by(&stack, &sink, &[&secret]).await;
    sink.answer_job(
        "again",
        ringback_testkit::Script::first(1, Answer::status(500)).finally(Answer::status(200)),
    );
    stack.accept(&job(&sink, "again")).await;
    let tried = sink.wait_for_job("again", 2, SOON).await;
    assert!(tried.iter().all(|arrival| is_signed_by(arrival, &[&secret])));
    assert_eq!(tried[0].header("webhook-id"), tried[1].header("webhook-id"));
    assert_ne!(tried[0].header("webhook-timestamp"), tried[1].header("webhook-timestamp"));
    assert_ne!(tried[0].header("webhook-signature"), tried[1].header("webhook-signature"));
}

#[tokio::test]
async fn without_secrets_nothing_is_signed_and_the_headers_can_have_another_prefix() {
    let options = sealed(Stack::options()).env("RINGBACK_WEBHOOK_PREFIX", "x-shop");
    let (stack, sink) = (options.start().await, Sink::start().await);
    let own = json!({"x-shop-id": "mine", "X-Shop_Signature": "mine", "x-shop": "stays"});
    stack.accept(&with(job(&sink, "plain"), "headers", own.clone())).await;
    let plain = sink.wait_for_job("plain", 1, SOON).await.remove(0);
    assert_eq!((plain.header("x-shop-signature"), plain.header("x-shop_signature")), (None, None));
    assert_eq!((plain.header("webhook-id"), plain.header("x-shop")), (None, Some("stays")));
    assert_ne!(plain.header("x-shop-id"), Some("mine"));

    let (_, secret) = add(&stack, &json!({})).await;
    eventually(SOON, "the secret signs", async || {
        let id = format!("signed-{}", sink.seen());
        stack.accept(&with(job(&sink, &id), "headers", own.clone())).await;
        let signed = sink.wait_for_job(&id, 1, SOON).await.remove(0);
        let has = signed.header("x-shop-signature").unwrap_or_default().to_owned();
        if has == signature(&signed, &secret, "x-shop") { Ok(()) } else { Err(has) }
    })
    .await;
}

#[tokio::test]
async fn a_notice_is_signed_as_its_job_and_nobody_can_submit_one() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (sealed(options).start().await, Sink::start().await);
        let (_, secret) = add(&stack, &json!({})).await;
        wait_signed_by(&stack, &sink, &[&secret]).await;
        sink.answer_job("doomed", Answer::status(410));
        stack.accept(&with(job(&sink, "doomed"), "on_dead", sink.url("/dead"))).await;
        stack.accept(&with(job(&sink, "fine"), "on_done", sink.url("/done"))).await;
        for (topic, path) in NOTICES.into_iter().zip(["/dead", "/done"]) {
            let notice = eventually(SOON, "the notice comes", async || {
                sink.arrivals().into_iter().find(|arrival| arrival.path == path).ok_or("none")
            })
            .await;
            assert!(is_signed_by(&notice, &[&secret]));
            let (status, problem) = stack.submit(&with(job(&sink, "forged"), "topic", topic)).await;
            assert_eq!((status, &problem["errors"][0]["field"]), (422, &json!("topic")), "{problem}");
            let batch = stack.batch(&[with(job(&sink, "forged"), "topic", topic)]).await.1;
            assert_eq!(batch["refused"], 1, "{batch}");
            stack.post(&format!("/v1/topics/{topic}/secrets"), &json!({})).await.expect(409);
        }
    }
}

#[tokio::test]
async fn a_wrong_request_is_refused_and_not_repeated_in_the_answer() {
    let stack = sealed(StackOptions::api_only()).start().await;
    for secret in ["hunter2", "whsec_aHVudGVyMg==", "whsec_hunter2hunter2hunter2hunter2hunter2-"] {
        let problem = stack.post(SECRETS, &json!({"secret": secret})).await.expect(422);
        assert_eq!(problem["errors"][0]["field"], "secret");
        assert!(!problem.to_string().contains(secret), "{problem}");
    }
    for (ask, field) in
        [(json!({"keep": "31d"}), "keep"), (json!({"secret": 5}), "secret"), (json!({"a": 1}), "a")]
    {
        assert_eq!(stack.post(SECRETS, &ask).await.expect(422)["errors"][0]["field"], field);
    }
    // A secret that is sent in a wrong place.
    for (answer, status) in [
        (stack.post(SECRETS, &json!(INSTALLATION)).await, 400),
        (stack.put("/v1/topics/e2e", &json!({"secrets": [INSTALLATION]})).await, 422),
        (stack.put("/v1/topics/e2e", &json!({"secrets": INSTALLATION})).await, 422),
    ] {
        let problem = answer.expect(status).to_string();
        assert!(!problem.contains(INSTALLATION), "{problem}");
    }
    assert_eq!(listed(&stack).await, []);

    // The same secret again is the same one; seven more secrets are allowed beside it.
    let given = json!({"secret": INSTALLATION});
    let (id, secret) = add(&stack, &given).await;
    assert_eq!(secret, INSTALLATION);
    assert_eq!(stack.post(SECRETS, &given).await.expect(200), json!({"id": id, "secret": INSTALLATION}));
    for _ in 0..7 {
        add(&stack, &json!({})).await;
    }
    stack.post(SECRETS, &json!({})).await.refused(409, "8 secrets");
    add(&stack, &json!({"keep": 0})).await;
    assert_eq!(listed(&stack).await.len(), 1);
    stack.delete(&format!("{SECRETS}/sec_unknown")).await.expect(404);
    stack.delete(&format!("{SECRETS}/hunter2")).await.expect(404);

    let unsealed = StackOptions::api_only().start().await;
    unsealed.post(SECRETS, &json!({})).await.refused(409, "RINGBACK_MASTER_KEYS");
}
