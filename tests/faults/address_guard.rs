//! The address guard: URLs, names, redirects and imports that lead to forbidden addresses are refused or buried, and
//! nothing is sent there.

use std::net::{IpAddr, Ipv4Addr};

use ringback_testkit::NameServer;
use tokio::time::sleep;

use crate::prelude::*;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// An address that is public, and that no test sends anything to: the packets would leave this machine.
const PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(93, 184, 216, 34));

fn guarded_by(names: &NameServer) -> StackOptions {
    Stack::options().guarded().env("RINGBACK_NAME_SERVERS", &names.address().to_string())
}

/// A job for the receiver under another host name.
fn job_for(sink: &Sink, id: &str, host: &str) -> Value {
    with(job(sink, id), "url", sink.url("/hook").replace("127.0.0.1", host))
}

/// Submits a job, and asserts that it dies at its first attempt with the reason `forbidden-address`.
async fn dies_forbidden(stack: &Stack, job: &Value) {
    stack.accept(job).await;
    let dead = stack.wait_state(TOPIC, job["id"].as_str().expect("an id"), "dead", SOON).await;
    assert_eq!(dead["reason"], "forbidden-address", "{job}: {dead}");
    assert_eq!(
        (&dead["attempts"], &dead["last"]["error"]),
        (&json!(1), &json!("forbidden-address")),
        "{dead}"
    );
}

#[tokio::test]
async fn what_a_url_says_by_itself_is_refused_at_submit() {
    let sink = Sink::start().await;
    for options in StackOptions::api_on_each_store().map(StackOptions::guarded) {
        let stack = options.start().await;
        for host in [
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f.1",
            "0177.0.0.1",
            "0",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "localhost",
            "receiver",
        ] {
            let (status, problem) = stack.submit(&job_for(&sink, "literal", host)).await;
            assert_eq!((status, &problem["errors"][0]["field"]), (422, &json!("url")), "{host}: {problem}");
            let allowed = problem["errors"][0]["allowed"].as_str().expect("a text");
            assert!(allowed.contains("RINGBACK_EGRESS_"), "{host}: {problem}");
        }
        let (status, problem) =
            stack.submit(&with(job(&sink, "port"), "url", "http://example.com:6379/")).await;
        assert_eq!((status, &problem["errors"][0]["field"]), (422, &json!("url")), "{problem}");
        let on_dead = json!({"topic": TOPIC, "id": "notice", "on_dead": sink.url("/dead"), "body": {}});
        let (status, problem) = stack.submit(&on_dead).await;
        assert_eq!((status, &problem["errors"][0]["field"]), (422, &json!("on_dead")), "{problem}");
        let on_done =
            with(with(job(&sink, "done"), "url", "http://public.example/"), "on_done", sink.url("/done"));
        let (status, problem) = stack.submit(&on_done).await;
        assert_eq!((status, &problem["errors"][0]["field"]), (422, &json!("on_done")), "{problem}");
        // A policy can be set, as by a restore. It is judged with each job that takes its URLs.
        stack.set_policy("by-policy", &json!({"url": sink.url("/hook")})).await;
        let (status, problem) = stack.submit(&json!({"topic": "by-policy", "id": "1", "body": {}})).await;
        assert_eq!((status, &problem["errors"][0]["field"]), (422, &json!("url")), "{problem}");
        // A batch refuses only the job that is wrong.
        let public = with(with(job(&sink, "public"), "url", "http://public.example/"), "delay", "1h");
        let (status, answers) = stack.batch(&[job(&sink, "here"), public]).await;
        let statuses = [0, 1].map(|n| answers["results"][n]["status"].clone());
        assert_eq!((status, statuses), (200, [json!(422), json!(201)]), "{answers}");
    }
    assert_eq!(sink.seen(), 0);
}

#[tokio::test]
async fn a_name_with_a_forbidden_address_is_forbidden_and_nothing_is_sent() {
    let (names, sink) = (NameServer::start(0), Sink::start().await);
    names.knows("here.example", &[HERE]);
    names.knows("mixed.example", &[PUBLIC, HERE]);
    names.knows("metadata.example", &[Ipv4Addr::new(169, 254, 169, 254).into()]);
    names.knows("mapped.example", &["::ffff:127.0.0.1".parse().expect("an address")]);
    for options in [guarded_by(&names), guarded_by(&names).in_one_process().store("embedded:./data")] {
        let stack = options.start().await;
        for host in ["here.example", "mixed.example", "metadata.example", "mapped.example", "HERE.example."] {
            dies_forbidden(&stack, &job_for(&sink, &host.replace('.', "-"), host)).await;
        }
    }
    assert_eq!(sink.seen(), 0);
}

#[tokio::test]
async fn a_name_that_changes_its_address_is_judged_by_what_is_connected_to() {
    let (names, sink) = (NameServer::start(0), Sink::start().await);
    // Nobody listens at the allowed address, so the first attempt fails and the second one looks up the name again.
    let allowed = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
    names.knows("rebinds.example", &[allowed]);
    let stack = guarded_by(&names).env("RINGBACK_EGRESS_ALLOW", "127.0.0.2");
    // Most attempts are refused.
    let stack = stack.env("RINGBACK_BREAKERS", "off").start().await;
    let retry = json!({"delays": ["200ms"], "max": -1});
    stack.accept(&with(job_for(&sink, "rebinds", "rebinds.example"), "retry", retry)).await;
    eventually(SOON, "a first attempt", async || {
        let (_, job) = stack.job(TOPIC, "rebinds").await;
        (job["last"]["error"] == "refused").then_some(()).ok_or_else(|| job.to_string())
    })
    .await;
    names.knows("rebinds.example", &[HERE]);
    let dead = stack.wait_state(TOPIC, "rebinds", "dead", SOON).await;
    assert_eq!(dead["reason"], "forbidden-address", "{dead}");

    // A name that changes all the time. Who asks twice for one connection is caught.
    let mut allowed_attempts = 0;
    for n in 0..60 {
        let id = format!("changes-{n}");
        names.knows("rebinds.example", &[allowed]);
        let job = with(job_for(&sink, &id, "rebinds.example"), "retry", json!({"preset": "none"}));
        stack.accept(&job).await;
        // About when the attempt begins.
        for _ in 0..8 {
            for address in [HERE, allowed] {
                sleep(Duration::from_micros(300)).await;
                names.knows("rebinds.example", &[address]);
            }
        }
        let dead = stack.wait_state(TOPIC, &id, "dead", SOON).await;
        allowed_attempts += u32::from(dead["reason"] != "forbidden-address");
    }
    assert!(allowed_attempts > 0, "none was allowed");
    assert_eq!(sink.seen(), 0);
}

#[tokio::test]
async fn no_callback_goes_to_ringback_itself_or_to_its_store_whatever_is_allowed() {
    let names = NameServer::start(0);
    names.knows("here.example", &[HERE]);
    let options = Stack::options().env("RINGBACK_NAME_SERVERS", &names.address().to_string());
    let stack = options.start().await;
    let redis = stack.redis().port();
    let notifier = stack.notifiers[0].admin().port();
    for (id, url) in [
        ("store", format!("http://127.0.0.1:{redis}/")),
        ("store-by-name", format!("http://here.example:{redis}/")),
        ("store-by-zero", format!("http://0.0.0.0:{redis}/")),
        ("admin", format!("http://127.0.0.1:{notifier}/healthz")),
        ("admin-mapped", format!("http://[::ffff:127.0.0.1]:{notifier}/healthz")),
    ] {
        dies_forbidden(&stack, &json!({"topic": TOPIC, "id": id, "url": url, "body": {}})).await;
    }

    let stack = Stack::options().in_one_process().store("embedded:./data").start().await;
    let api = stack.url("/v1/jobs");
    dies_forbidden(&stack, &json!({"topic": TOPIC, "id": "api", "url": api, "body": {}})).await;
}

#[tokio::test]
async fn an_import_is_taken_and_the_notifier_buries_what_is_forbidden() {
    let sink = Sink::start().await;
    let stack = Stack::options().guarded().start().await;
    stack.import(&[job(&sink, "imported")]).await;
    let dead = stack.wait_state(TOPIC, "imported", "dead", SOON).await;
    assert_eq!(dead["reason"], "forbidden-address", "{dead}");
    assert_eq!(sink.seen(), 0);
    let forbidden = stack.notifiers[0].metric("ringback_notifier_forbidden_connections_total").await;
    assert_eq!(forbidden, Some(1.0));
}

#[tokio::test]
async fn redirects_to_forbidden_addresses_are_not_followed() {
    let (sink, secret) = (Sink::start().await, Sink::start().await);
    for status in [301, 302, 303, 307, 308] {
        let id = status.to_string();
        sink.answer_job(&id, ringback_testkit::Answer::status(status).header("location", &secret.url("/")));
    }
    let stack = Stack::options().guarded().env("RINGBACK_EGRESS_ALLOW", "127.0.0.0/8").start().await;
    for status in [301, 302, 303, 307, 308] {
        let once = with(job(&sink, &status.to_string()), "retry", json!({"preset": "none"}));
        stack.accept(&once).await;
        let dead = stack.wait_state(TOPIC, &status.to_string(), "dead", SOON).await;
        assert_eq!(
            (&dead["reason"], &dead["last"]["status"]),
            (&json!("exhausted"), &json!(status)),
            "{dead}"
        );
    }
    assert_eq!(secret.seen(), 0);
}
