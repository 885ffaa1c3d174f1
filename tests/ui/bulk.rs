//! Changes of many jobs through the dashboard: jobs of a filter are counted, cancelled, followed and stopped; dead
//! jobs are revived at a rate or purged.

use super::dashboard::{Dashboard, id, in_row};
use crate::prelude::*;

#[tokio::test]
async fn jobs_of_a_filter_are_counted_cancelled_followed_and_stopped() {
    let stack = StackOptions::embedded().start().await;
    let Some(ui) = Dashboard::start(&stack).await else { return };
    let job = |n: usize| {
        let tag = if n < 600 { "mine" } else { "other" };
        json!({"topic": TOPIC, "id": format!("{tag}-{n}"), "url": "http://127.0.0.1:9/", "delay": "1h", "tags": [tag]})
    };
    stack.batch(&(0..650).map(job).collect::<Vec<_>>()).await;

    ui.open("#/jobs", "page-jobs").await;
    assert_eq!(
        ui.browser.count(&format!("{}:disabled", id("action-cancel"))).await,
        1,
        "not without a filter"
    );
    ui.browser.write(&id("filter-tag"), "mine").await;
    ui.browser.click(&id("filter-apply")).await;
    ui.browser.click(&format!("{}:enabled", id("action-cancel"))).await;
    ui.browser.wait_text(&id("dry-run-count"), "600 jobs").await;
    assert_eq!(ui.browser.count(&format!("{} li", id("dry-run-examples"))).await, 10);
    assert_eq!(stack.count_in("delayed").await, 650, "a count changes nothing");
    ui.browser.write(&id("input-rate"), "20").await;
    ui.browser.wait_text(&id("dialog-call"), r#""rate":20"#).await;
    ui.browser.click(&id("dialog-confirm")).await;
    eventually(SOON, "the dialog shows that some are changed", async || {
        let text = ui.browser.text(&id("bulk-progress")).await.unwrap_or_default();
        if text.starts_with("running") && !text.contains(": 0 of") { Ok(()) } else { Err(text) }
    })
    .await;
    ui.browser.click(&id("bulk-stop")).await;
    ui.browser.wait_text(&id("bulk-progress"), "stopped").await;
    let operation = only_operation(&stack).await;
    assert_eq!(
        (&operation["action"], &operation["state"]),
        (&json!("cancel"), &json!("stopped")),
        "{operation}"
    );
    assert_eq!(operation["filter"], json!({"tag": "mine"}));
    let changed = operation["changed"].as_u64().expect("a number");
    assert!(changed > 0 && changed < 600, "{operation}");
    ui.browser.click(&id("dialog-dismiss")).await;
    ui.browser.wait_gone(&id("dialog")).await;

    ui.open("#/bulk", "page-bulk").await;
    let row = operation["id"].as_str().expect("an id");
    ui.browser.wait_text(&format!("[data-key='{row}']"), "stopped").await;
    let filter = json!({"filter": {"tag": "other"}, "rate": 1});
    let slow = stack.post("/v1/jobs/cancel", &filter).await.expect(202);
    let slow = slow["id"].as_str().expect("an id");
    ui.confirm(&in_row(slow, "action-stop"), &format!("DELETE /v1/bulk/{slow}")).await;
    assert_eq!(stack.get(&format!("/v1/bulk/{slow}")).await.expect(200)["state"], "stopped");
    ui.has_no_complaints().await;
}

#[tokio::test]
async fn a_group_of_dead_letters_is_revived_at_a_rate_and_another_one_purged() {
    let stack = StackOptions::embedded().start().await;
    let Some(ui) = Dashboard::start(&stack).await else { return };
    stack.post_empty(&format!("/v1/topics/{TOPIC}/pause")).await.expect(200);
    let dead = |n: usize| {
        json!({"topic": TOPIC, "id": format!("dead-{n}"), "url": format!("http://{}.example/", ["one", "two"][n % 2]),
            "state": "dead", "reason": "exhausted", "attempts": 4, "failures": 3,
            "last": {"at": "2026-11-20T09:30:00.000Z", "status": 503, "duration_ms": 7}})
    };
    stack.import(&(0..30).map(dead).collect::<Vec<_>>()).await;

    ui.open("#/dead", "page-dead").await;
    assert_eq!(ui.browser.count(&id("row")).await, 2, "a row for each host");
    ui.browser.click(&in_row("exhausted|one.example|503", "action-revive")).await;
    ui.browser.wait_text(&id("dry-run-count"), "15 jobs").await;
    ui.browser.write(&id("input-rate"), "40").await;
    ui.browser.click(&id("dialog-confirm")).await;
    ui.browser.wait_text(&id("bulk-progress"), "done: 15 of 15").await;
    stack.wait_count("ready", 15, SOON).await;
    let operation = only_operation(&stack).await;
    assert_eq!((&operation["action"], &operation["rate"]), (&json!("revive"), &json!(40)), "{operation}");
    assert_eq!(stack.job(TOPIC, "dead-0").await.1["state"], "ready");
    assert_eq!(stack.job(TOPIC, "dead-1").await.1["state"], "dead");
    ui.browser.click(&id("dialog-dismiss")).await;

    ui.browser.click(&in_row("exhausted|two.example|503", "action-purge")).await;
    ui.browser.wait_text(&id("dry-run-count"), "15 jobs").await;
    assert_eq!(stack.count_in("dead").await, 15, "a count purges nothing");
    ui.browser.click(&id("dialog-confirm")).await;
    ui.browser.wait_text(&id("bulk-progress"), "done: 15 of 15").await;
    ui.browser.click(&id("dialog-dismiss")).await;
    ui.browser.wait_text(&id("page-dead"), "No job is dead.").await;
    assert_eq!((stack.job(TOPIC, "dead-1").await.0, stack.count_in("ready").await), (404, 15));
    ui.has_no_complaints().await;
}

async fn only_operation(stack: &Stack) -> Value {
    let list = stack.get("/v1/bulk").await.expect(200);
    assert_eq!(list["items"].as_array().map(Vec::len), Some(1), "{list}");
    list["items"][0].clone()
}
