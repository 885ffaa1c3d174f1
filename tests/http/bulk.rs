//! Bulk operations over HTTP: a carrier cancels, runs, revives, reschedules and purges the jobs of a filter, also
//! after its process was killed; and dry runs.

use ringback_testkit::{Reply, Role};

use crate::prelude::*;

/// `count` jobs that are due in an hour, with the tags `all` and `tag`.
fn tagged(count: usize, name: &str, tag: &str) -> Vec<Value> {
    let job = |n| json!({"topic": TOPIC, "id": format!("{name}-{n}"), "url": "http://127.0.0.1:9/", "delay": "1h", "tags": ["all", tag]});
    (0..count).map(job).collect()
}

fn dead(id: &str, host: &str, status: u16) -> Value {
    json!({"topic": TOPIC, "id": id, "url": format!("http://{host}/"), "state": "dead", "reason": "exhausted", "attempts": 4,
        "failures": 3, "last": {"at": "2026-11-20T09:30:00.000Z", "status": status, "duration_ms": 7}})
}

/// Starts an operation, and returns the path of its progress.
async fn start(stack: &Stack, action: &str, ask: &Value) -> String {
    let reply = stack.post(&format!("/v1/jobs/{action}"), ask).await;
    let answer = reply.expect(202);
    assert_eq!((&answer["action"], &answer["state"]), (&json!(action), &json!("running")));
    location(&reply)
}

/// The path of the progress of an operation, from the answer 202 to its start.
pub(super) fn location(reply: &Reply) -> String {
    let location = reply.header("location").expect("a location");
    assert_eq!(location, format!("/v1/bulk/{}", reply.expect(202)["id"].as_str().expect("an id")));
    location.to_owned()
}

pub(super) async fn progress(stack: &Stack, location: &str) -> Value {
    stack.get(location).await.expect(200)
}

/// Waits until an operation has ended, and returns how many jobs it has changed.
async fn done(stack: &Stack, location: &str) -> u64 {
    ended(stack, location).await["changed"].as_u64().expect("a number")
}

/// Waits up to a minute until an operation has ended, and returns its progress.
pub(super) async fn ended(stack: &Stack, location: &str) -> Value {
    let ended = stack.wait_get(location, Duration::from_secs(60), |now| now["state"] == "done").await;
    assert!(ended["ended_at"].is_string(), "{ended}");
    ended
}

/// Waits until an operation has changed some jobs. Returns the number, which must be below `most`.
pub(super) async fn begun(stack: &Stack, location: &str, most: u64) -> u64 {
    let begun = stack.wait_get(location, SOON, |now| now["changed"].as_u64() > Some(0)).await;
    let now = begun["changed"].as_u64().expect("a number");
    assert!(now < most, "{now} are changed already");
    now
}

/// The number of jobs that a dry run finds. Asserts that it is exact and that there are examples.
async fn counted(stack: &Stack, action: &str, ask: &Value) -> u64 {
    let answer = stack.post(&format!("/v1/jobs/{action}"), &with(ask.clone(), "dry_run", json!(true))).await;
    let answer = answer.expect(200);
    assert_eq!(answer["exact"], true, "{answer}");
    let examples = answer["examples"].as_array().expect("examples").len() as u64;
    let count = answer["count"].as_u64().expect("a number");
    assert_eq!(examples, count.min(10), "{answer}");
    count
}

#[tokio::test]
async fn all_jobs_of_a_customer_are_cancelled_by_one_call_and_nothing_else() {
    for options in StackOptions::each_store() {
        let stack = options.start().await;
        stack.batch(&[tagged(700, "mine", "customer:42"), tagged(700, "other", "customer:4")].concat()).await;
        let ask = json!({"filter": {"tag": "customer:42"}});
        assert_eq!(counted(&stack, "cancel", &ask).await, 700);
        assert_eq!(stack.count_in("delayed").await, 1400, "a dry run changes nothing");
        assert_eq!(stack.pages("/v1/jobs?tag=customer:42&limit=1000").await.concat().len(), 700);
        let location = start(&stack, "cancel", &ask).await;
        assert_eq!(done(&stack, &location).await, 700);
        stack.wait_count("cancelled", 700, SOON).await;
        assert_eq!(stack.count_in("delayed").await, 700);
        assert_eq!(counted(&stack, "cancel", &ask).await, 0);
        assert_eq!(stack.job(TOPIC, "mine-5").await.1["state"], "cancelled");
        assert_eq!(stack.job(TOPIC, "other-5").await.1["state"], "delayed");
        let listed = stack.get("/v1/bulk").await.expect(200);
        assert_eq!(listed["items"], json!([progress(&stack, &location).await]));
        assert_eq!(listed["items"][0]["filter"], ask["filter"]);
    }
}

#[tokio::test]
async fn each_action_changes_the_jobs_that_fit() {
    for options in StackOptions::each_store() {
        let stack = options.start().await;
        // In a paused topic, jobs that become ready stay ready.
        stack.post_empty(&format!("/v1/topics/{TOPIC}/pause")).await.expect(200);
        stack.batch(&tagged(30, "job", "a")).await;
        let tagged_dead = ["tagged-1", "tagged-2"]
            .map(|id| with(dead(id, "three.example", 500), "tags", json!(["customer:9"])));
        let dead: Vec<_> = (0..30)
            .map(|n| {
                dead(&format!("dead-{n}"), ["one.example:8080", "two.example"][n % 2], [503, 404, 500][n % 3])
            })
            .collect();
        stack.import(&dead).await;
        // A tag that only dead jobs are asked for: one index serves it, of two that could.
        stack.import(&tagged_dead).await;
        let tagged = json!({"filter": {"tag": "customer:9"}});
        assert_eq!(counted(&stack, "purge", &tagged).await, 2);
        assert_eq!(done(&stack, &start(&stack, "purge", &tagged).await).await, 2);
        stack.wait_count("purged", 2, SOON).await;
        let soon = json!({"filter": {"id_prefix": "job-1"}, "rate": 100_000});
        assert_eq!(done(&stack, &start(&stack, "run", &soon).await).await, 11);
        stack.wait_count("ready", 11, SOON).await;
        let later =
            json!({"filter": {"id_prefix": "job-2"}, "at": "2030-01-01T00:00", "time_zone": "Europe/Berlin"});
        let location = start(&stack, "reschedule", &later).await;
        assert_eq!(
            (done(&stack, &location).await, &progress(&stack, &location).await["at"]),
            (11, &json!("2029-12-31T23:00:00.000Z"))
        );
        let due = stack.pages("/v1/jobs?due_after=2029-12-31T00:00:00Z").await.concat();
        assert_eq!(due.len(), 11);
        let failing = json!({"filter": {"host": "one.example", "status": 503}, "rate": 100_000});
        assert_eq!(counted(&stack, "revive", &failing).await, 5);
        assert_eq!(done(&stack, &start(&stack, "revive", &failing).await).await, 5);
        let gone = json!({"filter": {"host": "two.example", "failed_before": "2026-11-20T09:31:00Z"}});
        assert_eq!(done(&stack, &start(&stack, "purge", &gone).await).await, 15);
        stack.wait_count("purged", 17, SOON).await;
        assert_eq!(stack.count_in("dead").await, 10);
        let all = json!({"all": true});
        let left = 30 + 5 + 10;
        assert_eq!(
            (counted(&stack, "cancel", &all).await, done(&stack, &start(&stack, "cancel", &all).await).await),
            (left, left)
        );
    }
}

#[tokio::test]
async fn jobs_that_come_after_the_call_are_left_alone_and_it_waits_for_a_carrier() {
    let mut stack = StackOptions::api_only().start().await;
    stack.batch(&tagged(300, "early", "a")).await;
    let ask = json!({"filter": {"tag": "a"}});
    let location = start(&stack, "cancel", &ask).await;
    let started = progress(&stack, &location).await;
    assert_eq!((&started["state"], &started["changed"]), (&json!("running"), &json!(0)));
    eventually(SOON, "a millisecond passes", async || {
        let job = stack.accept(&with(tagged(1, "probe", "b").remove(0), "id", json!(null))).await;
        if job["created_at"].as_str() > started["started_at"].as_str() { Ok(()) } else { Err(job) }
    })
    .await;
    stack.batch(&tagged(20, "late", "a")).await;
    stack.add(Role::Carrier).await;
    assert_eq!(done(&stack, &location).await, 300);
    assert_eq!(stack.pages("/v1/jobs?tag=a").await.concat().len(), 20);
    stack.carriers[0]
        .wait_metric(r#"ringback_carrier_changed_jobs_total{action="cancel"}"#, 300.0, SOON)
        .await;
}

#[tokio::test]
async fn a_carrier_killed_in_the_middle_is_followed_by_another_and_each_job_is_run_once() {
    let options = Stack::options().count(Role::Carrier, 2).lock_ttl("500ms");
    let (mut stack, sink) = (options.start().await, Sink::start().await);
    // After its first attempt each job is delayed again, and fits the filter again.
    sink.answer(Answer::status(500));
    let jobs = tagged(1500, "job", "a").into_iter();
    let jobs = jobs.map(|job| with(with(job, "url", sink.url("/hook")), "retry", json!({"delays": ["1h"]})));
    stack.batch(&jobs.collect::<Vec<_>>()).await;
    let location = start(&stack, "run", &json!({"filter": {"tag": "a"}, "rate": 300})).await;
    survives_kills(&mut stack, &sink, &location, 1500).await;
}

/// Restarts the two carriers in turn, so that one always runs. Asserts that an operation delivers each job once.
pub(super) async fn survives_kills(stack: &mut Stack, sink: &Sink, location: &str, jobs: usize) {
    begun(stack, location, jobs as u64).await;
    for victim in [0, 1, 0, 1, 0, 1] {
        stack.carriers[victim].restart();
        stack.carriers[victim].ready(SOON).await;
    }
    assert_eq!(done(stack, location).await, jobs as u64);
    sink.wait_for(jobs, SOON).await;
    let counts = sink.counts();
    assert_eq!((counts.len(), counts.values().max()), (jobs, Some(&1)));
}

#[tokio::test]
async fn an_operation_goes_on_after_its_process_was_killed_and_started_again() {
    let options = Stack::options().in_one_process().store("embedded:./data").lock_ttl("3s");
    let mut stack = options.start().await;
    stack.batch(&tagged(900, "job", "a")).await;
    let location = start(&stack, "cancel", &json!({"filter": {"tag": "a"}, "rate": 300})).await;
    begun(&stack, &location, 900).await;
    stack.ups[0].restart();
    stack.ready(SOON).await;
    assert_eq!(done(&stack, &location).await, 900);
    stack.wait_count("cancelled", 900, SOON).await;
}

#[tokio::test]
async fn a_stopped_operation_changes_no_more() {
    let stack = Stack::options().count(Role::Notifier, 0).start().await;
    stack.batch(&tagged(500, "job", "a")).await;
    let location = start(&stack, "cancel", &json!({"filter": {"tag": "a"}, "rate": 50})).await;
    begun(&stack, &location, 500).await;
    let stopped = stack.delete(&location).await.expect(200);
    assert_eq!(stopped["state"], "stopped");
    let changed = stopped["changed"].as_u64().expect("a number");
    assert_eq!(
        done(&stack, &start(&stack, "cancel", &json!({"filter": {"tag": "a"}})).await).await,
        500 - changed
    );
    stack.wait_count("cancelled", 500, SOON).await;
    assert_eq!(progress(&stack, &location).await, stopped);
    assert_eq!(stack.delete(&location).await.expect(200), stopped);
}

#[tokio::test]
async fn wrong_operations_change_nothing_and_too_many_are_refused() {
    let stack = StackOptions::api_only().start().await;
    stack.batch(&tagged(3, "job", "a")).await;
    let refused = async |action: &str, ask: Value, field: &str| {
        let answer = stack.post(&format!("/v1/jobs/{action}"), &ask).await.expect(422);
        assert_eq!(answer["errors"][0]["field"], field, "{answer}");
    };
    refused("cancel", json!({}), "filter").await;
    refused("cancel", json!({"filter": {}}), "filter").await;
    refused("cancel", json!({"filter": {"tag": "a", "colour": "red"}}), "filter.colour").await;
    refused("cancel", json!({"filter": {"state": "done"}}), "filter.state").await;
    refused("revive", json!({"filter": {"state": "ready"}}), "filter.state").await;
    refused("reschedule", json!({"filter": {"tag": "a"}}), "delay").await;
    refused("run", json!({"filter": {"tag": "a"}, "delay": "1h"}), "delay").await;
    refused("purge", json!({"filter": {"tag": "a"}, "rate": 0}), "rate").await;
    assert_eq!(stack.post("/v1/jobs/cancel", &json!([])).await.status, 400);
    assert_eq!(stack.post_empty("/v1/jobs/cancel").await.status, 422);
    for _ in 0..16 {
        start(&stack, "cancel", &json!({"filter": {"tag": "nothing"}})).await;
    }
    let many = stack.post("/v1/jobs/cancel", &json!({"filter": {"tag": "a"}})).await;
    many.refused(409, "16 bulk operations");
    assert_eq!(stack.post("/v1/topics/e2e/dead/revive", &json!({})).await.status, 409);
    for path in ["/v1/bulk/x", "/v1/bulk/0123456789abcdef", "/v1/bulk/0123456789ABCDEF"] {
        assert_eq!((stack.get(path).await.status, stack.delete(path).await.status), (404, 404), "{path}");
    }
    assert_eq!(stack.count_in("delayed").await, 3);
}
