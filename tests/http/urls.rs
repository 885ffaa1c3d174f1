//! URLs that no client can send to: refused wherever a caller gives one, but accepted by imports and restores; and
//! names that end with a dot.

use std::fs;

use ringback_testkit::{NameServer, Sink, Stack, StackOptions};
use serde_json::{Value, json};

use crate::cli::ringback;
use crate::sample_jobs::{SOON, TOPIC, job, sentinel, with};

const TEMPLATE: &str = "http://{{merchant}}.example/n";

/// The field and the detail of the first error of a problem; both are empty without errors.
fn refusal(reply: &Value) -> (&str, &str) {
    let error = &reply["errors"][0];
    (error["field"].as_str().unwrap_or_default(), error["detail"].as_str().unwrap_or_default())
}

#[tokio::test]
async fn one_is_refused_wherever_it_is_given() {
    for options in StackOptions::api_on_each_store() {
        let stack = options.start().await;
        for (url, wrong) in [
            (TEMPLATE, "'{', which is in no name"),
            ("http://${HOST}/n", "'$', which is in no name"),
            ("http://%7Ba%7D.example/", "'{', which is in no name"),
            ("http://a`b.example:8080/", "'`', which is in no name"),
            ("https://a..b/", "an empty label"),
            ("http://a.example:0/", "the port is 0"),
        ] {
            let far = json!({"topic": TOPIC, "id": "i", "delay": "1h", "url": "http://127.0.0.1:9/"});
            for field in ["url", "on_dead", "on_done"] {
                let with_it = with(far.clone(), field, url);
                let (status, problem) = stack.submit(&with_it).await;
                assert_eq!((status, refusal(&problem).0), (422, field), "{url}: {problem}");
                assert!(refusal(&problem).1.contains(wrong), "{url}: {problem}");
                let (status, answer) = stack.batch(&[with_it]).await;
                assert_eq!((status, &answer["refused"]), (200, &json!(1)), "{url}: {answer}");
                let policy =
                    stack.put(&format!("/v1/topics/{TOPIC}"), &json!({field: url})).await.expect(422);
                assert_eq!(refusal(&policy).0, field, "{url}");
                let mut of_schedule = with(json!({"topic": TOPIC, "url": "http://127.0.0.1:9/"}), field, url);
                of_schedule["body"] = json!(1);
                let schedule = json!({"every": "1h", "job": of_schedule});
                let schedule = stack.put("/v1/schedules/s", &schedule).await.expect(422);
                assert_eq!(refusal(&schedule).0, format!("job.{field}"), "{url}: {schedule}");
            }
        }
        assert_eq!(stack.count_in("delayed").await, 0);
    }
}

#[tokio::test]
async fn what_is_imported_or_restored_is_taken_and_the_notifier_says_so() {
    let stack = StackOptions::embedded().start().await;
    let policy = json!({"url": TEMPLATE, "on_dead": TEMPLATE});
    stack.put("/v1/topics/p?from=backup", &policy).await.expect(201);
    let schedule = json!({"every": "30d", "job": {"topic": TOPIC, "url": TEMPLATE, "body": 1}});
    stack.put("/v1/schedules/s?from=backup", &schedule).await.expect(201);
    let imported = json!({"topic": TOPIC, "id": "imported", "delay": "30d", "url": TEMPLATE, "body": 1});
    stack.import(std::slice::from_ref(&imported)).await;

    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("backup").to_string_lossy().into_owned();
    assert_eq!(ringback(&stack.url(""), &["backup", &file]).await.code, Some(0));
    assert!(fs::metadata(&file).is_ok_and(|file| file.len() > 0));
    let other = StackOptions::embedded().start().await;
    let run = ringback(&other.url(""), &["restore", &file]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(other.topic("p").await["policy"], policy);
    assert_eq!(other.get("/v1/schedules/s").await.expect(200)["job"]["url"], "http://{{merchant}}.example/n");

    let refused = other.put("/v1/topics/p?from=elsewhere", &json!({})).await.expect(422);
    assert_eq!(refusal(&refused).0, "from", "{refused}");
    assert_eq!(other.run(TOPIC, "imported").await.0, 200);
    let none = with(with(imported, "id", "due"), "delay", 0);
    other.import(&[with(none, "retry", json!({"preset": "none"}))]).await;
    let dead = other.wait_state(TOPIC, "due", "dead", SOON).await;
    assert_eq!(dead["last"]["error"], "broken", "{dead}");
}

#[tokio::test]
async fn a_name_with_the_dot_of_the_root_is_the_same_destination() {
    let names = NameServer::start(60);
    names.knows("merchant.example", &[[127, 0, 0, 1].into()]);
    for options in [Stack::options(), StackOptions::embedded()] {
        let stack = options.env("RINGBACK_NAME_SERVERS", &names.address().to_string()).start().await;
        let sink = Sink::start().await;
        let at = |host: &str| sink.url("/hook").replace("127.0.0.1", host);
        stack.post_empty("/v1/destinations/Merchant.Example./pause").await.expect(200);
        for (id, host) in [("plain", "merchant.example"), ("dot", "MERCHANT.example.")] {
            stack.accept(&with(job(&sink, id), "url", at(host))).await;
        }
        sentinel(&stack, &sink, "open").await;
        assert!(sink.arrivals_of("plain").is_empty() && sink.arrivals_of("dot").is_empty());
        for host in ["merchant.example", "merchant.example."] {
            let listed = stack.get(&format!("/v1/jobs?host={host}")).await.expect(200);
            assert_eq!(listed["items"].as_array().map(Vec::len), Some(2), "{host}: {listed}");
        }
        let destinations = stack.get("/v1/destinations").await.expect(200);
        let of_name = destinations["items"].as_array().expect("items").iter();
        let hosts: Vec<_> = of_name
            .filter(|item| item["host"].as_str().is_some_and(|host| host.starts_with("merchant")))
            .collect();
        assert_eq!(hosts.len(), 1, "{destinations}");
        stack.post_empty("/v1/destinations/merchant.example/resume").await.expect(200);
        sink.wait_for_jobs(&["plain", "dot"], 1, SOON).await;
        let expected = at("merchant.example").replace("http://", "").replace("/hook", "");
        for id in ["plain", "dot"] {
            assert_eq!(sink.arrivals_of(id)[0].header("host"), Some(&*expected));
        }
    }
}
