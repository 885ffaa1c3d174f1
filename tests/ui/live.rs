//! Open pages follow events of jobs, and show a banner while the API is away. The page is never loaded again.

use super::dashboard::{Dashboard, id, in_row};
use crate::prelude::*;

#[tokio::test]
async fn a_job_that_moves_is_seen_to_move() {
    let (stack, sink) = (Stack::start().await, Sink::start().await);
    let Some(ui) = Dashboard::start(&stack).await else { return };
    let browser = &ui.browser;
    ui.open("", "page-overview").await;
    browser.wait_text(&id("live"), "live").await;
    never_loaded_again(&ui).await;
    stack.accept(&with(job(&sink, "waits"), "delay", "1h")).await;
    browser.wait_text(&id("panel-states"), "1").await;

    sink.answer_job("waits", Answer::status(503).body("come back later"));
    browser.run("location.hash = '#/job?topic=e2e&id=waits'", &[]).await;
    browser.wait_text(&id("job-state"), "delayed").await;
    stack.set_policy(TOPIC, &json!({"retry": {"delays": ["100ms"], "max": 2}})).await;
    stack.run(TOPIC, "waits").await;
    stack.wait_state(TOPIC, "waits", "dead", SOON).await;
    browser.wait_text(&id("job-state"), "dead").await;
    browser.wait_text(&in_row("2", "attempt-answer"), "come back later").await;
    was_never_loaded_again(&ui).await;
    ui.has_no_complaints().await;
}

#[tokio::test]
async fn a_banner_says_that_the_api_is_away_and_goes_when_it_is_back() {
    let mut stack = Stack::start().await;
    let Some(ui) = Dashboard::start(&stack).await else { return };
    let browser = &ui.browser;
    stack.accept(&json!({"topic": "before", "id": "one", "url": "http://127.0.0.1:9/", "delay": "1h"})).await;
    ui.open("#/topics", "page-topics").await;
    browser.wait_for("[data-key='before']").await;
    never_loaded_again(&ui).await;
    assert_eq!(browser.count(&id("banner")).await, 0);

    stack.apis[0].kill();
    browser.wait_text(&id("banner"), "does not answer").await;
    assert_eq!(browser.count("[data-key='before']").await, 1, "what was shown stays");
    stack.apis[0].restart();
    stack.ready(SOON).await;
    browser.wait_gone(&id("banner")).await;
    stack.accept(&json!({"topic": "after", "id": "one", "url": "http://127.0.0.1:9/", "delay": "1h"})).await;
    browser.wait_for("[data-key='after']").await;
    browser.wait_text(&id("live"), "live").await;
    was_never_loaded_again(&ui).await;
}

async fn never_loaded_again(ui: &Dashboard) {
    ui.browser.run("window.loadedOnce = true", &[]).await;
}

async fn was_never_loaded_again(ui: &Dashboard) {
    assert_eq!(ui.browser.run("return window.loadedOnce", &[]).await, true);
}
