//! Names of receivers: unknown ones, some that no name server answers for, several addresses, and families that this
//! machine does not have.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ringback_testkit::{Answer, LookUp, NameServer, Role, Sink, Stack, StackOptions, eventually};
use serde_json::{Value, json};

use crate::sample_jobs::{SOON, TOPIC, job, with, with_all};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn asking(names: &NameServer) -> StackOptions {
    Stack::options().env("RINGBACK_NAME_SERVERS", &names.address().to_string())
}

/// A job for a receiver under another name.
fn job_for(sink: &Sink, id: &str, name: &str) -> Value {
    with(job(sink, id), "url", sink.url("/hook").replace("127.0.0.1", name))
}

/// The error of the only attempt of a job.
async fn error_of(stack: &Stack, job: Value) -> Value {
    let job = with(job, "retry", json!({"preset": "none"}));
    stack.accept(&job).await;
    stack.wait_state(TOPIC, job["id"].as_str().expect("an id"), "dead", SOON).await["last"]["error"].clone()
}

#[tokio::test]
async fn a_name_is_asked_for_once_and_each_of_its_addresses_is_tried() {
    let (names, sink) = (NameServer::start(60), Sink::start().await);
    // So that each job needs a connection of its own.
    sink.answer(Answer::status(200).header("connection", "close"));
    // Nobody listens at the first two.
    names.knows("shop.example", &[[127, 0, 0, 3].into(), [127, 0, 0, 2].into(), HERE]);
    let stack = asking(&names).count(Role::Notifier, 1).start().await;
    for n in 0..20 {
        stack.accept(&with(job_for(&sink, &n.to_string(), "shop.example"), "timeout", "10s")).await;
        sink.wait_for_job(&n.to_string(), 1, SOON).await;
    }
    assert_eq!(names.asked("shop.example"), 2, "once for each family");
    assert_eq!(
        sink.arrivals()[0].header("host"),
        Some(&*sink.url("").replace("http://127.0.0.1", "shop.example"))
    );
}

#[tokio::test]
async fn a_name_without_an_address_and_a_family_that_is_missing_fail_and_say_why() {
    let (names, sink) = (NameServer::start(60), Sink::start().await);
    names.knows("none.example", &[]);
    // TCP has no multicast, so that no machine has a way to it.
    let away = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    names.knows("six.example", &[away.into()]);
    let stack = asking(&names).start().await;
    for (name, expected) in [
        ("unknown.example", "dns"),
        ("none.example", "dns"),
        ("six.example", "connect"),
        ("[ff02::1]", "connect"),
    ] {
        let id = name.replace(['[', ']', ':'], "-");
        assert_eq!(error_of(&stack, job_for(&sink, &id, name)).await, expected, "{name}");
    }
}

#[tokio::test]
async fn attempts_that_wait_for_a_silent_name_server_hold_no_threads_and_do_not_keep_others_waiting() {
    let (names, sink) = (NameServer::start(60), Sink::start().await);
    names.set("silent.example", LookUp::Silent);
    (0..20).for_each(|n| names.knows(&format!("shop-{n}.example"), &[HERE]));
    let stack = asking(&names).count(Role::Notifier, 1).start().await;
    let threads = || {
        let tasks = format!("/proc/{}/task", stack.notifiers[0].pid());
        std::fs::read_dir(tasks).expect("it is running").count()
    };
    let before = threads();
    let fields = json!({"timeout": "200ms", "retry": {"delays": ["100ms"], "max": -1, "jitter": 0}});
    for n in 0..200 {
        stack.accept(&with_all(job_for(&sink, &format!("silent-{n}"), "silent.example"), &fields)).await;
    }
    let attempts = async || {
        let metrics = stack.notifiers[0].metrics().await;
        let name = r#"ringback_notifier_attempts_total{result="retry"} "#;
        let count = metrics.lines().find_map(|line| line.strip_prefix(name)?.parse::<usize>().ok());
        count.unwrap_or(0)
    };
    eventually(SOON, "attempts fail", async || match attempts().await {
        400.. => Ok(()),
        few => Err(few),
    })
    .await;
    for n in 0..20 {
        let id = format!("new-{n}");
        stack.accept(&job_for(&sink, &id, &format!("shop-{n}.example"))).await;
        sink.wait_for_job(&id, 1, SOON).await;
    }
    // With a thread for each lookup there are hundreds.
    assert!(threads() <= before + 4, "{} threads, {before} before", threads());
    let (asked, attempts) = (names.asked("silent.example"), attempts().await);
    assert!(
        asked < attempts / 10,
        "{asked} questions for {attempts} attempts: one look-up serves all that wait"
    );
}
