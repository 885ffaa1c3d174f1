//! Actions of the dashboard on one thing and their effects by the API: topics, destinations and schedules are paused,
//! resumed and run; a job is run, cancelled, rescheduled, revived and purged.

use super::dashboard::{Dashboard, id, in_row};
use crate::prelude::*;

fn delayed(id: &str) -> Value {
    json!({"topic": TOPIC, "id": id, "url": "http://127.0.0.1:9/", "delay": "1h"})
}

fn dead(id: &str) -> Value {
    json!({"topic": TOPIC, "id": id, "url": "http://127.0.0.1:9/", "state": "dead", "reason": "exhausted", "attempts": 4,
        "failures": 3, "last": {"at": "2026-11-20T09:30:00.000Z", "status": 503, "duration_ms": 7}})
}

#[tokio::test]
async fn topics_destinations_and_schedules_are_paused_resumed_and_run() {
    let stack = StackOptions::embedded().start().await;
    let Some(ui) = Dashboard::start(&stack).await else { return };
    stack.accept(&delayed("one")).await;
    let daily = json!({"cron": "0 9 * * *", "job": {"topic": "report", "url": "http://127.0.0.1:9/"}});
    stack.put("/v1/schedules/daily", &daily).await.expect(201);

    ui.open("#/topics", "page-topics").await;
    let done = ui.confirm(&in_row(TOPIC, "action-pause"), &format!("POST /v1/topics/{TOPIC}/pause")).await;
    assert!(done.contains("is paused"), "{done}");
    let below = "return innerHeight - document.querySelector('footer').getBoundingClientRect().bottom";
    assert_eq!(ui.browser.run(below, &[]).await, 0, "it is said at the lower edge, also of a short page");
    ui.browser.click(&id("status-close")).await;
    let height = "return document.querySelector('footer').getBoundingClientRect().height";
    assert_eq!(ui.browser.run(height, &[]).await, 0, "what was read takes no room");
    assert_eq!(stack.topic(TOPIC).await["paused"], true);
    ui.confirm(&in_row(TOPIC, "action-resume"), &format!("POST /v1/topics/{TOPIC}/resume")).await;
    assert_eq!(stack.topic(TOPIC).await["paused"], false);

    ui.open("#/destinations", "page-destinations").await;
    let row = "http://127.0.0.1:9";
    ui.confirm(&in_row(row, "action-pause"), "/pause").await;
    assert_eq!(destination(&stack).await["paused"], true);
    ui.confirm(&in_row(row, "action-resume"), "/resume").await;
    assert_eq!(destination(&stack).await["paused"], false);

    ui.open("#/schedules", "page-schedules").await;
    ui.confirm(&in_row("daily", "action-pause"), "POST /v1/schedules/daily/pause").await;
    assert_eq!(schedule(&stack).await["paused"], true);
    ui.confirm(&in_row("daily", "action-resume"), "POST /v1/schedules/daily/resume").await;
    assert_eq!(schedule(&stack).await["paused"], false);
    assert_eq!(schedule(&stack).await["fired"], 0);
    let done = ui.confirm(&in_row("daily", "action-run"), "POST /v1/schedules/daily/run").await;
    let last = schedule(&stack).await["last"]["id"].as_str().expect("it has run").to_owned();
    assert!(done.contains(&last), "{done} names {last}");
    ui.has_no_complaints().await;
}

async fn destination(stack: &Stack) -> Value {
    stack.get("/v1/destinations").await.expect(200)["items"][0].clone()
}

async fn schedule(stack: &Stack) -> Value {
    stack.get("/v1/schedules/daily").await.expect(200)
}

#[tokio::test]
async fn one_job_is_run_cancelled_rescheduled_revived_and_purged() {
    let stack = StackOptions::embedded().start().await;
    let Some(ui) = Dashboard::start(&stack).await else { return };
    // In a paused topic, jobs that become ready stay ready.
    stack.post_empty(&format!("/v1/topics/{TOPIC}/pause")).await.expect(200);
    stack.batch(&["run", "cancel", "reschedule"].map(delayed)).await;
    stack.import(&["revive", "purge"].map(dead)).await;

    for (name, call, state) in [
        ("run", "POST /v1/jobs/e2e/run/run", Some("ready")),
        ("cancel", "DELETE /v1/jobs/e2e/cancel", Some("cancelled")),
        ("revive", "POST /v1/jobs/e2e/revive/revive", Some("ready")),
        ("purge", "DELETE /v1/topics/e2e/dead/purge", None),
    ] {
        ui.open(&format!("#/job?topic={TOPIC}&id={name}"), "page-job").await;
        ui.confirm(&id(&format!("action-{name}")), call).await;
        match state {
            Some(state) => {
                stack.wait_state(TOPIC, name, state, SOON).await;
                ui.browser.wait_text(&id("job-state"), state).await;
            }
            None => assert_eq!(stack.job(TOPIC, name).await.0, 404),
        }
    }

    ui.open("#/job?topic=e2e&id=reschedule", "page-job").await;
    let before = stack.job(TOPIC, "reschedule").await.1["due_at"].clone();
    ui.browser.click(&id("action-reschedule")).await;
    ui.browser.write(&id("input-delay"), "never").await;
    ui.browser.click(&id("dialog-confirm")).await;
    ui.browser.wait_for(&id("dialog-error")).await;
    assert_eq!(stack.job(TOPIC, "reschedule").await.1["due_at"], before, "what is refused changes nothing");
    ui.browser.write(&id("input-delay"), "3d").await;
    ui.browser.click(&id("dialog-confirm")).await;
    eventually(SOON, "it is due later", async || {
        let due = stack.job(TOPIC, "reschedule").await.1["due_at"].clone();
        if due.as_str() > before.as_str() { Ok(()) } else { Err(due) }
    })
    .await;
    ui.has_no_complaints().await;
}
