//! Topic policies on running processes: each field takes effect within a second or so, also for existing jobs, and
//! outlives restarts.

mod delete_topic;
mod patch;

use ringback_core::job::MASK;
use ringback_testkit::{Reply, Role, Script, http_client, now};

use crate::contract::policies::SECOND;
use crate::prelude::*;
use crate::raw_post::{JSON, raw_post};
use crate::sample_jobs::{between, time};

const PATH: &str = "/v1/topics/e2e";

/// A job of the usual topic without a URL.
fn bare(id: &str) -> Value {
    json!({"topic": TOPIC, "id": id, "body": {"id": id}})
}

#[tokio::test]
async fn a_policy_is_put_as_a_whole_and_shown_as_it_was_written() {
    for options in StackOptions::each_store() {
        let stack = options.start().await;
        let shown = async || stack.get(PATH).await.json();
        assert_eq!(stack.get(PATH).await.status, 404, "nothing is known of it yet");
        let whole = json!({"retry": {"delays": ["1s", 2.5], "max": -1}, "timeout": "5s", "ttr": 60,
            "url": "http://h/", "headers": {"X-A": "1"}, "headers_to": ["http://h"], "expect_body": "success"});
        let reply = stack.set_policy(TOPIC, &whole).await;
        assert_eq!((reply.status, reply.json()), (201, json!({"topic": TOPIC, "policy": whole})));
        assert_eq!(shown().await["policy"], whole);
        let reply = stack.set_policy(TOPIC, &json!({"timeout": "1s"})).await;
        assert_eq!(reply.status, 200);
        assert_eq!(shown().await["policy"], json!({"timeout": "1s"}), "nothing of the first is left");
        stack.set_policy(TOPIC, &json!({})).await;
        assert_eq!(shown().await["policy"], json!({}));
        let reply = stack.put(PATH, &json!({"colour": 1, "ttr": "13h"})).await;
        let fields: Vec<_> =
            reply.json()["errors"].as_array().expect("errors").iter().map(|e| e["field"].clone()).collect();
        assert_eq!((reply.status, fields), (422, vec![json!("colour"), json!("ttr")]));
        assert_eq!(shown().await["policy"], json!({}), "a refused policy changes nothing");
    }
}

#[tokio::test]
async fn headers_are_added_where_the_job_has_none_of_the_name() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        stack.set_policy(TOPIC, &json!({"headers": {"X-Tenant": "a7", "x-kind": "topic"}})).await;
        let mut n = 0;
        let arrival = eventually(SECOND, "the topic's headers are added", async || {
            n += 1;
            let id = format!("job-{n}");
            stack.accept(&with(job(&sink, &id), "headers", json!({"X-Kind": "job", "x-own": "1"}))).await;
            let arrival = sink.wait_for_job(&id, 1, SOON).await.remove(0);
            if arrival.header("x-tenant").is_some() { Ok(arrival) } else { Err("no header") }
        })
        .await;
        let has = |name| arrival.header(name);
        assert_eq!((has("x-tenant"), has("x-kind"), has("x-own")), (Some("a7"), Some("job"), Some("1")));
        assert_eq!(arrival.headers.iter().filter(|(name, _)| *name == "x-kind").count(), 1);
        stack.accept(&with(job(&sink, "other"), "topic", "other")).await;
        assert_eq!(sink.wait_for_job("other", 1, SOON).await[0].header("x-tenant"), None);
    }
}

#[tokio::test]
async fn secret_headers_go_to_the_origins_that_the_policy_names_and_to_no_other() {
    for options in StackOptions::each_store() {
        let stack = options.start().await;
        let (own, other, evil) = (Sink::start().await, Sink::start().await, Sink::start().await);
        let secret = json!({"authorization": "Bearer 1", "x-a": "1"});
        let nowhere = stack.put(PATH, &json!({"headers": secret})).await.expect(422);
        assert_eq!(nowhere["errors"][0]["field"], "headers_to", "{nowhere}");

        stack.set_policy(TOPIC, &json!({"headers": secret, "url": own.url("/hook")})).await;
        let shown = stack.topic(TOPIC).await["policy"].clone();
        assert_eq!(shown["headers_to"], json!([own.url("")]), "{shown}");
        let headers_at = async |sink: &Sink, id: &str, url: Value| {
            stack.accept(&with(job(sink, id), "url", url)).await;
            let arrival = sink.wait_for_job(id, 1, SOON).await.remove(0);
            (arrival.header("authorization").is_some(), arrival.header("x-a").is_some())
        };
        let both = eventually(SECOND, "the policy applies", async || {
            let id = format!("own-{}", own.seen());
            match headers_at(&own, &id, Value::Null).await {
                (false, _) => Err("not yet"),
                both => Ok(both),
            }
        });
        assert_eq!(both.await, (true, true), "the job has the URL of the policy");
        assert_eq!(headers_at(&evil, "evil", evil.url("/hook").into()).await, (false, false));
        let shown = stack.get("/v1/jobs/e2e/evil?include=request").await.json();
        assert_eq!(shown["effective"].get("headers"), None, "{shown}");

        let to = json!([own.url(""), other.url("")]);
        let policy = json!({"headers": secret, "url": own.url("/hook"), "headers_to": to});
        stack.set_policy(TOPIC, &policy).await;
        eventually(SECOND, "the policy applies", async || {
            let id = format!("other-{}", other.seen());
            let (has, _) = headers_at(&other, &id, other.url("/hook").into()).await;
            if has { Ok(()) } else { Err("not yet") }
        })
        .await;
        assert_eq!(headers_at(&evil, "evil-2", evil.url("/hook").into()).await, (false, false));
        // A caller who does not know the value cannot send it to another origin.
        let masked = json!({"headers": {"authorization": MASK}, "headers_to": [evil.url("")]});
        let refused = stack.put(PATH, &masked).await.expect(422);
        assert_eq!(refused["errors"][0]["field"], "headers_to", "{refused}");
    }
}

#[tokio::test]
async fn an_existing_job_is_retried_by_the_current_policy_of_its_topic() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.retry("10m").start().await, Sink::start().await);
        sink.answer(Answer::status(500));
        stack.accept(&with(job(&sink, "waits"), "delay", "3s")).await;
        stack.accept(&with(with(job(&sink, "own"), "delay", "3s"), "retry", json!({"preset": "none"}))).await;
        stack
            .set_policy(TOPIC, &json!({"retry": {"delays": ["10ms", "30ms"], "max": -1, "jitter": 0}}))
            .await;
        let dead = stack.wait_state(TOPIC, "own", "dead", SOON).await;
        assert_eq!(dead["failures"], 1, "its own policy counts: {dead}");
        // The job is retried for ever, and the last tier repeats.
        let arrivals = sink.wait_for_job("waits", 12, SOON).await;
        for pair in arrivals.windows(2).skip(1) {
            assert!(between(pair[0].at, pair[1].at) >= Duration::from_millis(30), "a tier of 30 ms");
        }
        stack.set_policy(TOPIC, &json!({"retry": {"preset": "none"}})).await;
        let dead = stack.wait_state(TOPIC, "waits", "dead", SECOND).await;
        assert_eq!(dead["reason"], "exhausted", "{dead}");
        assert!(dead["failures"].as_u64() >= Some(12), "{dead}");
        stack.set_policy(TOPIC, &json!({})).await;
        eventually(SECOND, "the configured tiers count again", async || {
            stack.revive(TOPIC, "waits").await;
            let (_, job) = stack.job(TOPIC, "waits").await;
            if job["state"] == "delayed" { Ok(()) } else { Err(job) }
        })
        .await;
    }
}

#[tokio::test]
async fn an_attempt_ends_after_the_time_that_its_topic_gives_it() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        sink.answer(Answer::status(200).held());
        stack.set_policy(TOPIC, &json!({"timeout": "2s", "retry": {"preset": "none"}})).await;
        // After a second all processes know the policy.
        stack.accept(&with(job(&sink, "slow"), "delay", "1s")).await;
        let dead = stack.wait_state(TOPIC, "slow", "dead", SOON).await;
        assert_eq!(dead["last"]["error"], "timeout", "{dead}");
        let took = dead["last"]["duration_ms"].as_u64().expect("a duration");
        assert!((2_000..5_000).contains(&took), "{dead}");
        stack.accept(&with(job(&sink, "own"), "timeout", "100ms")).await;
        let dead = stack.wait_state(TOPIC, "own", "dead", SOON).await;
        assert!(dead["last"]["duration_ms"].as_u64() < Some(2_000), "its own deadline counts: {dead}");
    }
}

/// A lease is as long as the default deadline of 10 s and the margin; the notifier renews it for the rest.
#[tokio::test]
async fn a_topic_s_deadline_beyond_the_default_outlasts_the_lease_that_the_store_gave() {
    let (stack, sink) = (Stack::options().lease_margin("200ms").start().await, Sink::start().await);
    for (topic, timeout) in [("near", "14s"), ("far", "30s")] {
        let (path, policy) = (format!("/v1/topics/{topic}"), json!({"timeout": timeout}));
        assert_eq!(stack.put(&path, &policy).await.status, 201);
    }
    sink.answer_job("near", Answer::status(200).after(Duration::from_millis(12_000)));
    sink.answer_job("far", Answer::status(200).after(Duration::from_millis(17_000)));
    for topic in ["near", "far"] {
        stack.accept(&with(with(job(&sink, topic), "topic", topic), "delay", "1s")).await;
    }
    for topic in ["near", "far"] {
        let done = stack.wait_state(topic, topic, "done", 2 * SOON).await;
        assert_eq!((&done["attempts"], &done["failures"]), (&json!(1), &json!(0)), "{done}");
        assert_eq!(sink.arrivals_of(topic).len(), 1);
    }
}

#[tokio::test]
async fn only_the_answer_that_is_expected_is_a_success() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        let retry = json!({"delays": ["50ms"], "max": 2, "jitter": 0});
        stack.set_policy(TOPIC, &json!({"expect_body": "success", "retry": retry})).await;
        sink.answer(Answer::status(200).body("fail"));
        let mut n = 0;
        let dead = eventually(SECOND, "another answer is a failure", async || {
            n += 1;
            let id = format!("job-{n}");
            stack.accept(&job(&sink, &id)).await;
            eventually(SOON, "it has ended", async || {
                let (_, job) = stack.job(TOPIC, &id).await;
                if job["state"] == "dead" || job["state"] == "done" { Ok(job) } else { Err(job) }
            })
            .await;
            let (_, job) = stack.job(TOPIC, &id).await;
            if job["state"] == "dead" { Ok(job) } else { Err(job) }
        })
        .await;
        assert_eq!((&dead["reason"], &dead["failures"]), (&json!("exhausted"), &json!(2)), "{dead}");
        assert_eq!(
            (&dead["last"]["status"], &dead["last"]["error"]),
            (&json!(200), &json!("unexpected body"))
        );

        let longest = [b" ".repeat(60_000), b"success".to_vec()].concat();
        for (id, body) in
            [("same", b"success".to_vec()), ("spaced", b" \t\r\nsuccess\n\n".to_vec()), ("longest", longest)]
        {
            sink.answer_job(id, Answer::status(201).body(body));
            stack.accept(&job(&sink, id)).await;
            let done = stack.wait_state(TOPIC, id, "done", SOON).await;
            assert_eq!(done["attempts"], 1, "{done}");
        }
        for (id, body) in [
            ("empty", b"".to_vec()),
            ("case", b"SUCCESS".to_vec()),
            ("more", b"success!".to_vec()),
            ("parted", b"suc cess".to_vec()),
            ("json", b"\"success\"".to_vec()),
            ("beyond", [b"success".to_vec(), b" ".repeat(70_000), b"x".to_vec()].concat()),
        ] {
            let is_read_so_far = id == "beyond";
            sink.answer_job(id, Answer::status(200).body(body));
            stack.accept(&job(&sink, id)).await;
            // Only the first 64 KiB of a body are read and compared.
            let state = if is_read_so_far { "done" } else { "dead" };
            stack.wait_state(TOPIC, id, state, SOON).await;
        }
        sink.answer_job("gone", Answer::status(410).body("success"));
        stack.accept(&job(&sink, "gone")).await;
        assert_eq!(stack.wait_state(TOPIC, "gone", "dead", SOON).await["reason"], "gone");
        sink.answer_job("wrong", Answer::status(500).body("success"));
        stack.accept(&job(&sink, "wrong")).await;
        let dead = stack.wait_state(TOPIC, "wrong", "dead", SOON).await;
        assert_eq!((&dead["last"]["status"], dead["last"].get("error")), (&json!(500), None), "{dead}");
    }
}

#[tokio::test]
async fn an_empty_answer_can_be_expected() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    stack.set_policy(TOPIC, &json!({"expect_body": "", "retry": {"preset": "none"}})).await;
    sink.answer(Answer::status(200).body("something"));
    let mut n = 0;
    eventually(SECOND, "an answer with a body is a failure", async || {
        n += 1;
        stack.accept(&job(&sink, &n.to_string())).await;
        sink.wait_for_job(&n.to_string(), 1, SOON).await;
        if stack.count_in("dead").await > 0 { Ok(()) } else { Err("none is dead") }
    })
    .await;
    for (id, body) in [("nothing", ""), ("space", " \r\n")] {
        sink.answer_job(id, Answer::status(204).body(body));
        stack.accept(&job(&sink, id)).await;
        stack.wait_state(TOPIC, id, "done", SOON).await;
    }
}

#[tokio::test]
async fn a_job_without_a_url_goes_to_the_url_its_topic_had_at_its_submit() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::start().await);
        stack.set_policy(TOPIC, &json!({"url": sink.url("/first"), "ttr": "5s"})).await;
        // This API knows the policy at once, because it has put it.
        let late = with(with(bare("late"), "delay", "2s"), "timeout", "5s");
        stack.accept(&late).await;
        stack.accept(&bare("now")).await;
        assert_eq!(sink.wait_for_job("now", 1, SOON).await[0].path, "/first");
        stack.set_policy(TOPIC, &json!({"url": sink.url("/second")})).await;
        stack.accept(&bare("next")).await;
        stack.accept(&job(&sink, "own")).await;
        assert_eq!(sink.wait_for_job("next", 1, SOON).await[0].path, "/second");
        assert_eq!(sink.wait_for_job("own", 1, SOON).await[0].path, "/hook");
        assert_eq!(sink.wait_for_job("late", 1, SOON).await[0].path, "/first", "it was fixed at the submit");
        // The caller's submit is unchanged, so it is a repetition.
        let (status, again) = stack.submit(&late).await;
        assert_eq!(status, 200, "{again}");

        let (status, batch) = stack.batch(&[bare("in-batch"), with(bare("pull"), "ttr", "5s")]).await;
        assert_eq!((status, &batch["accepted"]), (200, &json!(2)), "{batch}");
        assert_eq!(sink.wait_for_job("in-batch", 1, SOON).await[0].path, "/second");
        assert_eq!(
            stack.reserve_one(TOPIC, &json!({"wait": "20s"})).await["id"],
            "pull",
            "a job with a time to run is for pull"
        );

        assert_eq!(stack.delete(&format!("{PATH}?force=true")).await.status, 202);
        stack.set_policy(TOPIC, &json!({})).await;
        stack.accept(&bare("for-pull")).await;
        assert_eq!(stack.reserve_one(TOPIC, &json!({"wait": "20s"})).await["id"], "for-pull");
        let (status, again) = stack.submit(&bare("next")).await;
        assert_eq!((status, &again["state"]), (200, &json!("done")));
    }
}

#[tokio::test]
async fn consumers_use_the_ttr_and_the_retry_policy_of_the_topic() {
    for options in StackOptions::each_store() {
        let stack = options.retry("10m").start().await;
        stack
            .set_policy(TOPIC, &json!({"ttr": "700ms", "retry": {"delays": ["10ms"], "max": 2, "jitter": 0}}))
            .await;
        stack.accept(&bare("expires")).await;
        let before = now();
        let first = stack.reserve_one(TOPIC, &json!({"wait": "20s"})).await;
        let left = between(before, time(&first["deadline"]));
        assert!(left > Duration::from_millis(600) && left < Duration::from_secs(5), "{left:?}");
        // The carrier settles it as failed when its time has run out.
        let second = stack.reserve_one(TOPIC, &json!({"wait": "20s"})).await;
        assert_eq!((&second["id"], &second["attempt"]), (&json!("expires"), &json!(2)));
        let dead = stack.wait_state(TOPIC, "expires", "dead", SOON).await;
        assert_eq!((&dead["failures"], &dead["reason"]), (&json!(2), &json!("exhausted")), "{dead}");

        stack.accept(&bare("fails")).await;
        stack.accept(&with(bare("own"), "ttr", "60s")).await;
        for attempt in 1..=2 {
            let job = stack.reserve_one(TOPIC, &json!({"wait": "20s"})).await;
            assert_eq!((&job["id"], &job["attempt"]), (&json!("fails"), &json!(attempt)));
            assert_eq!(stack.settle(&job, "retry", &json!({})).await.status, 200);
            if attempt == 1 {
                let own = stack.reserve_one(TOPIC, &json!({"wait": "20s"})).await;
                assert_eq!(own["id"], "own", "a job's own time to run counts");
                assert!(between(now(), time(&own["deadline"])) > Duration::from_secs(50), "{own}");
            }
        }
        assert_eq!(stack.job(TOPIC, "fails").await.1["state"], "dead");
    }
}

#[tokio::test]
async fn policies_outlive_a_restart_of_every_process() {
    for options in StackOptions::each_store() {
        let (mut stack, sink) = (options.start().await, Sink::start().await);
        stack.set_policy(TOPIC, &json!({"headers": {"x-tenant": "a7"}, "url": sink.url("/topic")})).await;
        for process in stack.processes_mut() {
            process.kill();
            process.restart();
        }
        stack.ready(SOON).await;
        stack.accept(&bare("after")).await;
        let arrival = sink.wait_for_job("after", 1, SOON).await.remove(0);
        assert_eq!((arrival.path.as_str(), arrival.header("x-tenant")), ("/topic", Some("a7")));
    }
}

#[tokio::test]
async fn a_policy_put_at_one_api_is_known_to_all_others() {
    let (stack, sink) = (Stack::options().count(Role::Api, 2).start().await, Sink::start().await);
    let other = stack.apis[1].setting("RINGBACK_API_LISTEN").expect("it listens").to_owned();
    stack.set_policy(TOPIC, &json!({"url": sink.url("/topic")})).await;
    let shown = http_client().get(format!("http://{other}{PATH}")).send().await.expect("an answer");
    let shown = Reply::read(shown).await.expect("a body").json();
    assert_eq!(shown["policy"]["url"], sink.url("/topic"), "it is looked up");
    let mut n = 0;
    eventually(SECOND, "the other API applies the policy", async || {
        n += 1;
        let id = format!("job-{n}");
        assert_eq!(
            raw_post(format!("http://{other}/v1/jobs"), &[JSON], bare(&id).to_string()).await.status,
            201
        );
        let arrived = tokio::time::timeout(Duration::from_millis(300), sink.wait_for_job(&id, 1, SOON)).await;
        arrived.map(drop).map_err(|_| "it is for pull")
    })
    .await;
}

#[tokio::test]
async fn nothing_is_delivered_before_the_policies_are_known() {
    let (mut stack, sink) = (Stack::options().count(Role::Notifier, 0).start().await, Sink::start().await);
    stack.set_policy(TOPIC, &json!({"headers": {"x-tenant": "a7"}})).await;
    let mut redis = stack.redis().client().await;
    let (key, aside) = ("ringback:{meta}:policies", "ringback:{meta}:aside");
    let mut run = async |words: &[&str]| {
        let mut command = redis::cmd(words[0]);
        words[1..].iter().for_each(|word| {
            command.arg(*word);
        });
        command.exec_async(&mut redis).await.expect("redis answers");
    };
    run(&["RENAME", key, aside]).await;
    run(&["SET", key, "no hash"]).await;
    stack.accept(&job(&sink, "waits")).await;
    stack.notifiers.push(stack.spec(Role::Notifier).start());
    eventually(SOON, "the notifier has the store and no policies", async || {
        let (_, text) = stack.notifiers[0].readiness().await?;
        let report: Value = serde_json::from_str(&text).map_err(|_| text.clone())?;
        let is_ready = |check: &str| report["checks"][check]["ready"].as_bool();
        let both = (is_ready("store"), is_ready("notifier's policies"));
        if both == (Some(true), Some(false)) { Ok(()) } else { Err(text) }
    })
    .await;
    let arrived = sink.wait_for_job("waits", 1, SOON);
    assert!(tokio::time::timeout(Duration::from_secs(2), arrived).await.is_err(), "the job is delivered");
    assert_eq!(stack.job(TOPIC, "waits").await.1["state"], "ready");
    run(&["RENAME", aside, key]).await;
    assert_eq!(sink.wait_for_job("waits", 1, SOON).await[0].header("x-tenant"), Some("a7"));
    stack.ready(SOON).await;
}

#[tokio::test]
async fn a_policy_that_the_receiver_meets_again_is_the_same_after_a_recovery() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    stack.set_policy(TOPIC, &json!({"expect_body": "success", "headers": {"x-tenant": "a7"}})).await;
    sink.answer_job(
        "flips",
        Script::first(2, Answer::status(200).body("wait")).finally(Answer::status(200).body("success")),
    );
    stack.accept(&with(job(&sink, "flips"), "delay", "1s")).await;
    let done = stack.wait_state(TOPIC, "flips", "done", SOON).await;
    assert_eq!(done["attempts"], 3, "{done}");
    assert!(sink.arrivals_of("flips").iter().all(|arrival| arrival.header("x-tenant") == Some("a7")));
}
