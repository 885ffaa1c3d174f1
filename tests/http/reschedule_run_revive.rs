//! `PATCH`, `run` and `revive` of a job over HTTP: from each state to the delivery, conflicts, and a store that is away.

use ringback_testkit::{Role, now};

use crate::prelude::*;
use crate::sample_jobs::{between, sentinel, time};

/// The job with these fields changed; null removes a field.
fn but(job: &Value, changes: Value) -> Value {
    let (mut job, Value::Object(changes)) = (job.clone(), changes) else { panic!("changes are fields") };
    for (name, value) in changes {
        match value {
            Value::Null => drop(job.as_object_mut().expect("a job").remove(&name)),
            value => job[name] = value,
        }
    }
    job
}

/// The detail of an answer, which must be a 409.
fn refusal((status, problem): (u16, Value)) -> String {
    assert_eq!((status, &problem["status"]), (409, &json!(409)), "{problem}");
    problem["detail"].as_str().expect("a detail").to_owned()
}

#[tokio::test]
async fn a_rescheduled_job_arrives_at_its_new_time_and_never_before() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    let accepted = stack.accept(&with(job(&sink, "later"), "delay", "1500ms")).await;
    let (status, moved) = stack.reschedule(TOPIC, "later", &json!({"delay": "2s"})).await;
    assert_eq!(status, 200, "{moved}");
    let due = time(&moved["due_at"]);
    assert!(between(time(&accepted["due_at"]), due) >= Duration::from_millis(450), "{moved}");
    assert_eq!(moved, but(&accepted, json!({"due_at": moved["due_at"]})));
    assert_eq!(stack.job(TOPIC, "later").await, (200, moved));

    let far = with(job(&sink, "sooner"), "delay", "30d");
    stack.accept(&far).await;
    let at = format!("{:.3}", now() + Duration::from_millis(1_500));
    let (status, moved) = stack.reschedule(TOPIC, "sooner", &json!({ "at": at })).await;
    assert_eq!((status, &moved["due_at"]), (200, &json!(at)));
    // A repeated submit still finds the same job.
    assert_eq!(stack.submit(&far).await.0, 200);

    for (id, due) in [("later", due), ("sooner", at.parse().expect("a time"))] {
        let arrival = sink.wait_for_job(id, 1, SOON).await.remove(0);
        assert!(arrival.at >= due, "{id}: due {due}, arrived {}", arrival.at);
        assert_eq!((arrival.due_at(), arrival.attempt()), (Some(due), Some(1)));
        stack.wait_state(TOPIC, id, "done", SOON).await;
    }
}

#[tokio::test]
async fn a_job_that_is_run_or_rescheduled_to_the_past_arrives_at_once() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    for (id, delay) in [("near", "1m"), ("far", "30d")] {
        let accepted = stack.accept(&with(job(&sink, id), "delay", delay)).await;
        let before = now();
        let (status, ready) = stack.run(TOPIC, id).await;
        let due = time(&ready["due_at"]);
        assert_eq!(
            (status, &ready),
            (200, &but(&accepted, json!({"state": "ready", "due_at": ready["due_at"]})))
        );
        let arrival = sink.wait_for_job(id, 1, SOON).await.remove(0);
        assert_eq!(arrival.due_at(), Some(due));
        assert!(between(before, arrival.at) < Duration::from_secs(3), "{id}");
    }
    for (n, past) in [json!({"at": "2001-02-03T04:05:06Z"}), json!({"delay": 0})].into_iter().enumerate() {
        let id = format!("past-{n}");
        stack.accept(&with(job(&sink, &id), "delay", "1h")).await;
        let (status, ready) = stack.reschedule(TOPIC, &id, &past).await;
        assert_eq!((status, &ready["state"]), (200, &json!("ready")), "{ready}");
        sink.wait_for_job(&id, 1, SOON).await;
    }
}

#[tokio::test]
async fn a_job_that_waits_for_a_retry_can_be_moved_and_keeps_its_failures() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    sink.answer_job("fails", Answer::status(500));
    stack.accept(&with(job(&sink, "fails"), "retry", json!({"delays": ["1h"], "max": 3, "jitter": 0}))).await;
    let mut waits = stack.wait_state(TOPIC, "fails", "delayed", SOON).await;
    assert_eq!(waits["failures"], 1);
    // Only the answer to a look at a job says what it waits for.
    let waiting = waits.as_object_mut().and_then(|job| job.remove("waiting"));
    assert_eq!(waiting.map(|waiting| waiting["until"].clone()).as_ref(), Some(&waits["due_at"]));
    let (status, moved) = stack.reschedule(TOPIC, "fails", &json!({"delay": "2h"})).await;
    assert_eq!((status, &moved), (200, &but(&waits, json!({"due_at": moved["due_at"]}))));
    assert_eq!(stack.run(TOPIC, "fails").await.0, 200);
    let arrivals = sink.wait_for_job("fails", 2, SOON).await;
    assert_eq!(arrivals[1].attempt(), Some(2));
    assert_eq!(stack.wait_state(TOPIC, "fails", "delayed", SOON).await["failures"], 2);
}

#[tokio::test]
async fn a_revived_job_is_delivered_again_with_its_failures_counted_anew() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    sink.answer_job("broken", Answer::status(500));
    stack.accept(&job(&sink, "broken")).await;
    let dead = stack.wait_state(TOPIC, "broken", "dead", SOON).await;
    assert_eq!((&dead["attempts"], &dead["failures"]), (&json!(4), &json!(4)), "{dead}");
    assert!(refusal(stack.run(TOPIC, "broken").await).contains("/revive"));

    let (status, ready) = stack.revive(TOPIC, "broken").await;
    assert_eq!(status, 200, "{ready}");
    let changes = json!({"state": "ready", "failures": 0, "due_at": ready["due_at"], "reason": null});
    assert_eq!(ready, but(&dead, changes));
    let again = stack.wait_state(TOPIC, "broken", "dead", SOON).await;
    assert_eq!((&again["attempts"], &again["failures"]), (&json!(8), &json!(4)), "{again}");
    let attempts: Vec<_> = sink.arrivals_of("broken").iter().map(|a| a.attempt()).collect();
    assert_eq!(attempts, (1..=8).map(Some).collect::<Vec<_>>());

    sink.answer_job("broken", Answer::status(200));
    assert_eq!(stack.revive(TOPIC, "broken").await.0, 200);
    stack.wait_state(TOPIC, "broken", "done", SOON).await;
    assert_eq!((stack.count_in("done").await, stack.count_in("dead").await), (1, 0));
}

#[tokio::test]
async fn a_conflict_with_the_state_is_explained_with_what_to_do_instead() {
    let (mut stack, sink) = (Stack::options().count(Role::Notifier, 0).start().await, Sink::start().await);
    let later = json!({"delay": "1h"});
    let ready = stack.accept(&job(&sink, "a")).await;
    assert!(
        refusal(stack.reschedule(TOPIC, "a", &later).await).contains("e2e/a is ready: it is due already")
    );
    assert!(refusal(stack.revive(TOPIC, "a").await).contains("is ready, not dead"));
    assert_eq!(stack.run(TOPIC, "a").await, (200, ready));
    stack.accept(&with(job(&sink, "waits"), "delay", "1h")).await;
    assert!(refusal(stack.revive(TOPIC, "waits").await).contains("is delayed, not dead: run it"));

    sink.answer_job("a", Answer::status(200).held());
    stack.add(Role::Notifier).await;
    sink.wait_for_job("a", 1, SOON).await;
    assert!(
        refusal(stack.reschedule(TOPIC, "a", &later).await).contains("is reserved: it is being delivered")
    );
    assert!(refusal(stack.revive(TOPIC, "a").await).contains("is reserved, not dead"));
    let (status, reserved) = stack.run(TOPIC, "a").await;
    assert_eq!((status, &reserved["state"]), (200, &json!("reserved")));
    sink.release();
    stack.wait_state(TOPIC, "a", "done", SOON).await;
    stack.cancel(TOPIC, "waits").await;
    sink.answer_job("dead", Answer::status(410));
    stack.accept(&job(&sink, "dead")).await;
    stack.wait_state(TOPIC, "dead", "dead", SOON).await;
    assert!(refusal(stack.reschedule(TOPIC, "dead", &later).await).contains("is dead: revive it"));
    for (id, state) in [("a", "done"), ("waits", "cancelled")] {
        let answers = [
            stack.reschedule(TOPIC, id, &later).await,
            stack.run(TOPIC, id).await,
            stack.revive(TOPIC, id).await,
        ];
        for answer in answers {
            assert!(refusal(answer).contains(&format!("is {state}: submit another job")), "{id}");
        }
    }
    let unknown = [
        stack.reschedule(TOPIC, "nobody", &later).await,
        stack.run(TOPIC, "nobody").await,
        stack.revive(TOPIC, "nobody").await,
    ];
    assert!(unknown.iter().all(|(status, problem)| (*status, &problem["status"]) == (404, &json!(404))));
    sentinel(&stack, &sink, "after").await;
    assert_eq!(sink.seen(), 3, "a refused call delivers nothing");
}

#[tokio::test]
async fn a_moved_job_is_listed_exported_and_taken_in_as_it_is() {
    let (stack, sink) = (Stack::options().count(Role::Notifier, 0).start().await, Sink::start().await);
    for id in ["moved", "run"] {
        stack.accept(&with(job(&sink, id), "delay", "30d")).await;
    }
    let (_, moved) = stack.reschedule(TOPIC, "moved", &json!({"at": "2030-01-02T03:04:05.678Z"})).await;
    let (_, run) = stack.run(TOPIC, "run").await;
    let reply = stack.get("/v1/jobs?state=ready").await;
    let host = sink.url("").replace("http://", "");
    assert_eq!(reply.json()["items"], json!([with(run, "host", host)]), "{:?}", reply.body);
    let lines = stack.get("/v1/export").await.body;
    let other = Stack::options().count(Role::Notifier, 0).start().await;
    let reply = other.post_lines("/v1/import", lines).await;
    assert_eq!((reply.status, &reply.json()["created"]), (200, &json!(2)), "{:?}", reply.body);
    assert_eq!(other.job(TOPIC, "moved").await, (200, moved));
    assert_eq!(other.job(TOPIC, "run").await.1["state"], "ready");
}

#[tokio::test]
async fn a_store_that_is_away_is_a_503() {
    let mut stack = StackOptions::api_only().start().await;
    stack.redis_mut().kill();
    stack.skip_check();
    let answers = [
        stack.reschedule(TOPIC, "a", &json!({"delay": 1})).await,
        stack.run(TOPIC, "a").await,
        stack.revive(TOPIC, "a").await,
    ];
    for (status, problem) in answers {
        assert_eq!(status, 503, "{problem}");
        assert!(
            problem["detail"].as_str().is_some_and(|detail| detail.contains("look at the job")),
            "{problem}"
        );
    }
}

#[tokio::test]
async fn a_connection_that_broke_is_not_the_callers_concern() {
    let stack = Stack::options().count(Role::Notifier, 0).start().await;
    let mut redis = stack.redis().client().await;
    stack.accept(&json!({"topic": TOPIC, "id": "a", "delay": "1h", "url": "http://127.0.0.1:9/"})).await;
    for round in 0..5 {
        redis::cmd("CLIENT")
            .arg("KILL")
            .arg("TYPE")
            .arg("normal")
            .exec_async(&mut redis)
            .await
            .expect("KILL");
        let (status, moved) = stack.reschedule(TOPIC, "a", &json!({"delay": "2h"})).await;
        assert_eq!((status, &moved["state"]), (200, &json!("delayed")), "round {round}: {moved}");
    }
}
