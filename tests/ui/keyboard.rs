//! The dashboard is used by the keyboard alone: past the navigation, and through a dialog and back.

use ringback_testkit::Key;

use super::dashboard::{Dashboard, id};
use crate::prelude::*;

#[tokio::test]
async fn the_keyboard_is_enough() {
    let stack = StackOptions::embedded().start().await;
    let Some(ui) = Dashboard::start(&stack).await else { return };
    stack.accept(&json!({"topic": TOPIC, "id": "one", "url": "http://127.0.0.1:9/", "delay": "1h"})).await;
    ui.open("#/topics", "page-topics").await;

    ui.browser.press(Key::Tab).await;
    assert_eq!(focused(&ui).await, "skip-link", "the first stop");
    ui.browser.press(Key::Enter).await;
    ui.browser.wait_for("main:focus").await;
    tab_to(&ui, "action-pause").await;

    ui.browser.press(Key::Enter).await;
    ui.browser.wait_for(&id("dialog")).await;
    ui.browser.press(Key::Escape).await;
    ui.browser.wait_gone(&id("dialog")).await;
    assert_eq!(focused(&ui).await, "action-pause", "the focus is back where it was");
    assert_eq!(stack.topic(TOPIC).await["paused"], false);

    ui.browser.press(Key::Enter).await;
    ui.browser.wait_for(&id("dialog")).await;
    tab_to(&ui, "dialog-confirm").await;
    ui.browser.press(Key::Enter).await;
    ui.browser.wait_text(&id("status"), "is paused").await;
    assert_eq!(stack.topic(TOPIC).await["paused"], true);
    let inside = ui.browser.run("return document.activeElement !== document.body", &[]).await;
    assert_eq!(inside, true, "the focus is not lost when the dialog closes");
}

/// The test id of the focused element, or the start of its markup.
async fn focused(ui: &Dashboard) -> String {
    let script =
        "return document.activeElement?.dataset.testid ?? document.activeElement?.outerHTML.slice(0, 200)";
    ui.browser.run(script, &[]).await.as_str().unwrap_or_default().to_owned()
}

/// Presses the tab key until an element has the focus. Panics after 30 stops.
async fn tab_to(ui: &Dashboard, wanted: &str) {
    let mut stops = Vec::new();
    while stops.len() < 30 {
        let at = focused(ui).await;
        if at == wanted {
            return;
        }
        stops.push(at);
        ui.browser.press(Key::Tab).await;
    }
    panic!("{wanted} is not reached with the tab key: {stops:?}");
}
