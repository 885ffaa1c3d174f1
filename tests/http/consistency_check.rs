//! The consistency check and its repair over HTTP and on the command line, on a Redis and an embedded store, also
//! under load, when callers hang up, and while Redis is silent.

use http::Method;
use ringback_testkit::{Role, http_client};
use ringback_wire::CheckResponse;
use tokio::time::timeout;

use crate::cli::ringback;
use crate::prelude::*;
use crate::redis_layout::keys;

/// Removes the due times of all delayed jobs that are near from Redis.
async fn lose_due_times(stack: &Stack) {
    let mut redis = stack.redis().client().await;
    let keys: Vec<Vec<u8>> = keys::all(&mut redis, "due:*").await;
    assert!(!keys.is_empty());
    redis::cmd("DEL").arg(&keys).query_async::<()>(&mut redis).await.expect("DEL");
}

#[tokio::test]
async fn a_job_that_would_never_be_due_is_found_and_arrives_after_the_repair() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    stack.accept(&with(job(&sink, "lost"), "delay", "3s")).await;
    stack.accept(&with(job(&sink, "far"), "delay", "2h")).await;
    lose_due_times(&stack).await;
    let found = stack.check().await;
    assert_eq!((found.clean, found.found, found.repaired, found.checked), (false, 1, 0, 2), "{found:?}");
    let finding = &found.findings[0];
    assert_eq!((finding.kind.as_str(), finding.id.as_deref()), ("unindexed", Some("lost")), "{finding:?}");
    assert_eq!((finding.topic.as_deref(), finding.repaired), (Some(TOPIC), false));

    let repaired = stack.repair().await;
    assert_eq!((repaired.clean, repaired.found, repaired.repaired), (true, 1, 1), "{repaired:?}");
    assert!(repaired.findings[0].repaired);
    sink.wait_for_job("lost", 1, SOON).await;
    stack.wait_state(TOPIC, "lost", "done", SOON).await;
    let again = stack.check().await;
    assert!(again.clean && again.findings.is_empty(), "{again:?}");
}

#[tokio::test]
async fn the_embedded_store_is_checked_and_repaired_by_the_same_calls() {
    let stack = Stack::options().in_one_process().store("embedded:data").start().await;
    let sink = Sink::start().await;
    sink.answer_job("dead", Answer::status(410));
    for id in ["done", "dead"] {
        stack.accept(&job(&sink, id)).await;
        stack.wait_state(TOPIC, id, id, SOON).await;
    }
    stack.accept(&with(job(&sink, "far"), "delay", "2h")).await;
    for answer in [stack.check().await, stack.repair().await] {
        assert_eq!((answer.clean, answer.found, answer.checked, answer.stale), (true, 0, 2, 0), "{answer:?}");
        assert_eq!((answer.shards, answer.compared), (4, 4));
    }
}

#[tokio::test]
async fn nothing_is_found_while_jobs_are_delivered_and_fail() {
    let options = Stack::options().count(Role::Carrier, 2).count(Role::Notifier, 2);
    let (stack, sink) = (options.start().await, Sink::start().await);
    let jobs: Vec<_> = (0..1500)
        .map(|n| {
            let id = format!("job-{n}");
            if n % 5 == 0 {
                sink.answer_job(&id, Answer::status(503));
            }
            with(job(&sink, &id), "delay", format!("{}ms", n * 2))
        })
        .collect();
    for part in jobs.chunks(500) {
        assert_eq!(stack.batch(part).await.1["accepted"], part.len());
    }
    let mut checks = 0;
    eventually(3 * SOON, "all jobs have ended", async || {
        let check = stack.check().await;
        assert!(check.clean, "{check:?}");
        checks += 1;
        let (done, dead) = (stack.count_in("done").await, stack.count_in("dead").await);
        if (done, dead) == (1200, 300) { Ok(()) } else { Err(format!("{done} are done, {dead} dead")) }
    })
    .await;
    assert!(checks > 1, "no check came before the jobs had ended");
    let check = stack.check().await;
    assert_eq!((check.clean, check.checked, check.compared), (true, 300, 4), "{check:?}");
}

#[tokio::test]
async fn the_command_line_shows_findings_and_exits_with_1_until_they_are_repaired() {
    let stack = StackOptions::api_only().start().await;
    let server = stack.url("");
    let run = ringback(&server, &["check"]).await;
    assert!(run.code == Some(0) && run.out.starts_with("clean"), "{run:?}");
    stack.accept(&json!({"topic": "t", "id": "i", "delay": "10s", "url": "http://127.0.0.1:9/"})).await;
    lose_due_times(&stack).await;
    let run = ringback(&server, &["check"]).await;
    assert_eq!(run.code, Some(1), "{run:?}");
    for text in ["KIND", "unindexed", "t/i", "clean               no", "1, 0 repaired"] {
        assert!(run.out.contains(text), "no {text} in {}", run.out);
    }
    let run = ringback(&server, &["check", "--output", "json"]).await;
    let answer: CheckResponse = serde_json::from_str(&run.out).expect("the API's JSON");
    assert_eq!((run.code, answer.clean, answer.found), (Some(1), false, 1));
    let run = ringback(&server, &["check", "--repair"]).await;
    assert!(run.code == Some(0) && run.out.contains("1, 1 repaired"), "{run:?}");
    let run = ringback(&server, &["check", "--repair", "--output", "json"]).await;
    let answer: CheckResponse = serde_json::from_str(&run.out).expect("the API's JSON");
    assert_eq!((run.code, answer.clean, answer.found), (Some(0), true, 0));
}

#[tokio::test]
async fn a_repair_with_fields_in_its_body_is_refused() {
    let stack = StackOptions::api_only().start().await;
    for (body, status) in [(&b"{}"[..], 200), (b"{\"dry\":true}", 422), (b"[", 400), (&[b' '; 5000], 413)] {
        let body = Some(("application/json", body.to_vec().into()));
        assert_eq!(stack.request(Method::POST, "/v1/check/repair", body).await.status, status);
    }
    assert_eq!(stack.post_empty("/v1/check").await.status, 405);
}

/// An API on a store with 256 shards, so that a check takes its time. The check at the end of the stack is left out.
fn many_shards() -> StackOptions {
    StackOptions::api_only().env("RINGBACK_SHARDS", "256").unchecked()
}

#[tokio::test]
async fn of_two_checks_at_a_time_one_is_refused() {
    let stack = many_shards().start().await;
    let ask = || stack.get("/v1/check");
    let (one, other) = tokio::join!(ask(), ask());
    let (done, busy) = if one.status == 503 { (other, one) } else { (one, other) };
    assert_eq!((done.status, busy.status), (200, 503), "{:?}, {:?}", done.body, busy.body);
    let done = done.json();
    assert_eq!((&done["clean"], &done["shards"]), (&json!(true), &json!(256)), "{done}");
    assert_eq!(busy.header("retry-after"), Some("1"));
    let problem = busy.json();
    let detail = problem["detail"].as_str().expect("a detail");
    assert!(detail.contains("another check or repair is under way"), "{detail}");
}

#[tokio::test]
async fn a_caller_that_hangs_up_ends_its_check() {
    let mut stack = many_shards().start().await;
    let url = stack.url("/v1/check");
    let hung_up = http_client().get(&url).timeout(Duration::from_millis(300)).send().await;
    assert!(hung_up.is_err_and(|error| error.is_timeout()), "it takes seconds");
    // The first check would take seconds more, but another one can begin at once.
    stack.redis_mut().stop();
    eventually(Duration::from_secs(3), "another check is not refused", async || {
        let problem = stack.get("/v1/check").await.json();
        let detail = problem["detail"].as_str().unwrap_or_default().to_owned();
        if detail.contains("did not answer") { Ok(()) } else { Err(detail) }
    })
    .await;
    stack.redis_mut().cont();
}

#[tokio::test]
async fn a_check_rides_over_a_redis_that_is_silent_for_a_while() {
    let mut stack = many_shards().start().await;
    let url = stack.url("/v1/check");
    let mut check = std::pin::pin!(async { http_client().get(&url).send().await });
    let begun = timeout(Duration::from_millis(300), check.as_mut()).await;
    assert!(begun.is_err(), "it takes seconds");
    stack.redis_mut().stop();
    // A call to the store takes two seconds at most.
    let early = timeout(Duration::from_millis(3500), check.as_mut()).await;
    stack.redis_mut().cont();
    assert!(early.is_err(), "{early:?}");
    let answer = check.await.expect("an answer");
    assert_eq!(answer.status(), 200);
    let check: CheckResponse = serde_json::from_slice(&answer.bytes().await.expect("a body")).expect("JSON");
    assert!(check.clean, "{check:?}");
}

#[tokio::test]
async fn repairs_made_before_the_caller_hung_up_are_logged() {
    let stack = many_shards().start().await;
    let jobs: Vec<_> = (0..500)
        .map(|n| json!({"topic": "t", "id": format!("job-{n}"), "delay": "8m", "url": "http://127.0.0.1:9/"}))
        .collect();
    assert_eq!(stack.batch(&jobs).await.1["accepted"], 500);
    lose_due_times(&stack).await;
    let url = stack.url("/v1/check/repair");
    let hung_up = http_client().post(&url).timeout(Duration::from_millis(500)).send().await;
    assert!(hung_up.is_err_and(|error| error.is_timeout()), "it takes seconds");
    eventually(SOON, "the log lists the repaired findings", async || {
        let log = stack.apis[0].log();
        let line = log.lines().find(|line| line.contains("a repair was interrupted"));
        line.filter(|line| line.contains("unindexed: ")).map(str::to_owned).ok_or(log)
    })
    .await;
    let rest = stack.repair().await;
    assert!(rest.clean && rest.found > 0 && rest.found < 500, "{rest:?}");
}

#[tokio::test]
async fn a_check_of_a_store_that_is_away_is_503() {
    let mut stack = StackOptions::api_only().start().await;
    stack.redis_mut().kill();
    stack.skip_check();
    for (method, path) in [(Method::GET, "/v1/check"), (Method::POST, "/v1/check/repair")] {
        let reply = stack.request(method, path, None).await;
        assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")), "{path}");
        assert_eq!(reply.header("content-type"), Some("application/problem+json"));
    }
    let run = ringback(&stack.url(""), &["check"]).await;
    assert!(run.code == Some(2) && run.err.contains("503"), "{run:?}");
}
