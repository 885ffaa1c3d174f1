//! Hostile strings (markup, scripts, script URLs) in every field that a caller, a consumer or a receiver can write:
//! the dashboard shows them as text.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::dashboard::{Dashboard, id};
use crate::prelude::*;

/// Marks itself in the window if it is ever taken for markup.
const IMAGE: &str = "<img src=x onerror=window.__pwned=1>";
const SCRIPT: &str = "\"'><script>window.__pwned=1;alert(1)</script>${window.__pwned=1}{{1}}";
/// Written from right to left, with invisible and control characters.
const REVERSED: &str = "\u{202e}gnp.exe\u{202c}\u{200b}\u{7}\u{1b}[31m";

#[tokio::test]
async fn hostile_strings_are_text_wherever_they_come_from() {
    let stack = StackOptions::embedded().start().await;
    let Some(ui) = Dashboard::start(&stack).await else { return };
    let sink = Sink::start().await;
    let names = Names::submit(&stack, &sink).await;

    let job = format!("#/job?topic={}&id={}", encoded(&names.topic), encoded(&names.id));
    let answered = format!("#/job?topic={}&id=answered", encoded(&names.topic));
    for (fragment, page, text) in names.pages(&job, &answered) {
        ui.open(&fragment, page).await;
        ui.browser.wait_text(&id(page), text).await;
        is_harmless(&ui, &fragment).await;
    }
    ui.open(&answered, "page-job").await;
    ui.browser.wait_text(&id("attempt-answer"), IMAGE).await;

    ui.open(&job, "page-job").await;
    for action in ["action-curl", "action-cancel"] {
        ui.browser.click(&id(action)).await;
        ui.browser.wait_for(&id("dialog")).await;
        is_harmless(&ui, action).await;
        ui.browser.click(&id("dialog-dismiss")).await;
        ui.browser.wait_gone(&id("dialog")).await;
    }
    ui.has_no_complaints().await;
    ui.stays_at_home().await;
}

/// Panics if a string has become an element or a script URL, or has run.
async fn is_harmless(ui: &Dashboard, place: &str) {
    assert!(!ui.browser.has_alert().await, "an alert is open at {place}");
    assert_eq!(
        ui.browser.run("return window.__pwned ?? null", &[]).await,
        Value::Null,
        "a script has run at {place}"
    );
    let strange = "return [...document.body.querySelectorAll('img, script, iframe, object, embed, base, style, [onerror], [onload], a[href^=\"javascript:\" i], form[action]')].map((element) => element.outerHTML)";
    assert_eq!(ui.browser.run(strange, &[]).await, json!([]), "markup at {place}");
}

/// Names as hostile as the API accepts them.
struct Names {
    topic: String,
    id: String,
    tag: String,
    schedule: String,
}

impl Names {
    /// Submits jobs, a schedule and a bulk operation with hostile strings, buries a pull job with one, pauses the topic,
    /// and waits until a hostile receiver has answered a job.
    async fn submit(stack: &Stack, sink: &Sink) -> Self {
        let names = Self {
            topic: "javascript.alert-1".to_owned(),
            id: format!("javascript:{}", "long".repeat(25)),
            tag: "<img/src=x/onerror=window.__pwned=1>".to_owned(),
            schedule: "javascript.1".to_owned(),
        };
        let long = "w".repeat(2000);
        let body = json!({IMAGE: SCRIPT, "reversed": REVERSED, "long": long, "link": "javascript:alert(1)"});
        let hostile = |id: &str, delay: &str| {
            json!({"topic": names.topic, "id": id, "url": sink.url("/?q=%3Cimg%20src=x%20onerror=alert(1)%3E"), "delay": delay,
                "body": body, "tags": [names.tag], "headers": {"x-hostile": format!("{IMAGE}\"'><script>alert(1)</script>")},
                "context": {"hostile": IMAGE, "link": "javascript:alert(1)"}})
        };
        sink.answer(Answer::status(410).header("x-why", IMAGE).body(format!("{IMAGE}{SCRIPT}{REVERSED}")));
        stack.accept(&hostile(&names.id, "1h")).await;
        stack.accept(&hostile("answered", "0s")).await;
        stack.wait_state(&names.topic, "answered", "dead", SOON).await;
        let text = json!({"topic": names.topic, "id": "bytes", "url": sink.url("/"), "delay": "1h",
            "body_base64": BASE64_STANDARD.encode(format!("<html>{IMAGE}{SCRIPT}{REVERSED}")), "content_type": "text/html"});
        stack.accept(&text).await;
        let daily = json!({"every": "1d", "job": {"topic": names.topic, "url": sink.url("/"), "body": {"html": IMAGE}, "tags": [names.tag]}});
        stack.put(&format!("/v1/schedules/{}", names.schedule), &daily).await.expect(201);
        let later = json!({"filter": {"tag": names.tag, "state": "delayed"}, "delay": "1h"});
        stack.post("/v1/jobs/reschedule", &later).await.expect(202);
        stack.post_empty(&format!("/v1/topics/{}/pause", names.topic)).await.expect(200);
        let pull = json!({"topic": "pull", "id": "buried", "body": IMAGE});
        stack.accept(&pull).await;
        let reserved = stack.reserve_one("pull", &json!({})).await;
        stack.settle(&reserved, "bury", &json!({"error": IMAGE})).await.expect(200);
        names
    }

    /// The pages that show some of these strings: the fragment, the test id, and a text that the page has to show.
    fn pages<'a>(&'a self, job: &str, answered: &str) -> Vec<(String, &'a str, &'a str)> {
        let (topic, schedule) = (encoded(&self.topic), encoded(&self.schedule));
        vec![
            ("#/".to_owned(), "page-overview", "dead"),
            ("#/topics".to_owned(), "page-topics", self.topic.as_str()),
            (format!("#/topic?topic={topic}"), "page-topic", self.topic.as_str()),
            ("#/destinations".to_owned(), "page-destinations", "127.0.0.1"),
            ("#/jobs".to_owned(), "page-jobs", self.tag.as_str()),
            (job.to_owned(), "page-job", SCRIPT),
            (answered.to_owned(), "page-job", IMAGE),
            ("#/dead".to_owned(), "page-dead", IMAGE),
            ("#/schedules".to_owned(), "page-schedules", self.schedule.as_str()),
            (format!("#/schedule?id={schedule}"), "page-schedule", self.schedule.as_str()),
            ("#/bulk".to_owned(), "page-bulk", self.tag.as_str()),
            ("#/audit-log".to_owned(), "page-audit-log", self.topic.as_str()),
            // Hostile strings in links to the dashboard.
            (format!("#/job?topic={}&id=javascript:alert(1)", encoded(IMAGE)), "page-job", IMAGE),
            (format!("#/jobs?tag={}&topic={}", encoded(IMAGE), encoded(SCRIPT)), "page-jobs", "Jobs"),
        ]
    }
}

/// Percent-encodes every byte of a text, for a query.
fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
