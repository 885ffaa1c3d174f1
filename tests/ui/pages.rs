//! Each page of the dashboard shows the data of a real stack, in light and dark and on a narrow screen, without faults
//! of accessibility and without requests to other origins. Screenshots go to `target/screenshots`.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ringback_testkit::Script;

use super::dashboard::{Dashboard, id};
use crate::prelude::*;

/// Each page: its fragment, its test id, and texts of the data that it has to show.
const PAGES: [(&str, &str, &[&str]); 13] = [
    ("#/", "page-overview", &["127.0.0.1:9 (refused, for ", "1 pull job is dead:"]),
    ("#/topics", "page-topics", &["mail"]),
    ("#/topic?topic=mail", "page-topic", &["retry"]),
    ("#/destinations", "page-destinations", &["refused, "]),
    ("#/jobs?tag=customer:42", "page-jobs", &["later-3", "127.0.0.1:"]),
    ("#/job?topic=mail&id=fails", "page-job", &["the queue is full"]),
    ("#/job?topic=mail&id=arrives", "page-job", &["RINGBACK_ATTEMPT_LOG=all"]),
    ("#/job?topic=mail&id=second", "page-job", &["answered 200 after "]),
    ("#/dead", "page-dead", &["exhausted", "buried", "Complete: 2 dead jobs."]),
    ("#/schedules", "page-schedules", &["daily-report"]),
    ("#/schedule?id=daily-report", "page-schedule", &["Europe/Berlin"]),
    ("#/bulk", "page-bulk", &["reschedule"]),
    ("#/audit-log", "page-audit-log", &["pause"]),
];

/// The faults of a page that axe-core calls serious or critical, each with the first elements that have it.
const AXE: &str = "
    const { violations } = await axe.run(document, { resultTypes: ['violations'] });
    return violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
        .map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.slice(0, 5).map(({ html, failureSummary }) => html + ' ' + failureSummary).join('; ')}`);";

/// The elements that make the page wider than the screen.
const WIDER: &str = "
    if (document.documentElement.scrollWidth <= innerWidth) return [];
    return [...document.querySelectorAll('body *')]
        .filter((element) => element.getBoundingClientRect().right > innerWidth + 1)
        .slice(0, 5).map((element) => element.outerHTML.slice(0, 200));";

/// Short words that are broken over lines, each with its element.
const BROKEN: &str = r"
    const found = [];
    const walker = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        if (node.parentElement.closest('.unseen, thead, details:not([open]), option')) continue;
        for (const { 0: word, index } of node.data.matchAll(/[\p{L}\p{N}]+/gu)) {
            // An id or an address may be longer than a line.
            const run = node.data.slice(0, index).match(/\S*$/)[0].length + node.data.slice(index).match(/^\S*/)[0].length;
            if (word.length > 12 || run > 24) continue;
            const range = document.createRange();
            range.setStart(node, index);
            range.setEnd(node, index + word.length);
            const lines = new Set([...range.getClientRects()].filter(({ width }) => width > 0).map(({ top }) => Math.round(top)));
            if (lines.size > 1) found.push(`${word} in ${node.parentElement.outerHTML.slice(0, 120)}`);
        }
    }
    return found.slice(0, 5);";

/// Buttons of rows that a finger does not reach without scrolling to the side.
const OUT_OF_REACH: &str = "
    return [...document.querySelectorAll('td.actions button')]
        .filter((button) => { const { left, right, width } = button.getBoundingClientRect(); return left < 0 || right > innerWidth || width === 0; })
        .slice(0, 5).map((button) => button.outerHTML.slice(0, 200));";

#[tokio::test]
async fn each_page_shows_its_data_on_any_screen_to_everybody() {
    let stack = StackOptions::embedded().start().await;
    let Some(ui) = Dashboard::start(&stack).await else { return };
    let sink = Sink::start().await;
    fill(&stack, &sink).await;
    let axe = std::fs::read_to_string(target().join("tools/axe.min.js")).ok();
    if axe.is_none() {
        eprintln!("axe-core is not there (deploy/local/axe.sh): accessibility is not tested");
    }

    let mut faults = Vec::new();
    for (fragment, page, texts) in PAGES {
        ui.browser.resize(1280, 900).await;
        ui.open(fragment, page).await;
        for text in texts {
            ui.browser.wait_text(&id(page), text).await;
        }
        if let Some(axe) = &axe {
            ui.browser.run(axe, &[]).await;
        }
        for scheme in ["light", "dark"] {
            ui.browser.prefer_colours(scheme).await;
            save(&ui, &format!("{page}-{scheme}")).await;
            if axe.is_some() {
                let found = ui.browser.run_async(AXE, &[]).await;
                faults.extend(strings(&found).map(|fault| format!("{page} in {scheme}: {fault}")));
            }
        }
        ui.browser.prefer_colours("light").await;
        ui.browser.resize(390, 1600).await;
        save(&ui, &format!("{page}-narrow")).await;
        for (script, fault) in [
            (WIDER, "is too wide for 390 px"),
            (BROKEN, "breaks a word at 390 px"),
            (OUT_OF_REACH, "has buttons out of reach at 390 px"),
        ] {
            let found = ui.browser.run(script, &[]).await;
            faults.extend(strings(&found).map(|element| format!("{page} {fault}: {element}")));
        }
        if axe.is_some() {
            let found = ui.browser.run_async(AXE, &[]).await;
            faults.extend(strings(&found).map(|fault| format!("{page} at 390 px: {fault}")));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    ui.has_no_complaints().await;
    ui.stays_at_home().await;
}

fn strings(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Fills a stack with jobs, a schedule, a bulk operation and a pause, so that each page has data to show.
async fn fill(stack: &Stack, sink: &Sink) {
    stack.set_policy("mail", &json!({"retry": {"delays": ["100ms"], "max": 2}})).await;
    sink.answer_job("fails", Answer::status(503).body("the queue is full"));
    let job = |id: &str, delay: &str| {
        json!({"topic": "mail", "id": id, "url": sink.url("/mail"), "delay": delay, "tags": ["customer:42"],
            "body": {"to": "someone@example.com", "n": 1.0}, "headers": {"x-shop": "north"}})
    };
    let later = (0..20).map(|n| job(&format!("later-{n}"), "1h"));
    sink.answer_job("second", Script::first(1, Answer::status(503)));
    stack
        .batch(
            &later.chain([job("fails", "0s"), job("arrives", "0s"), job("second", "0s")]).collect::<Vec<_>>(),
        )
        .await;
    stack.wait_state("mail", "fails", "dead", SOON).await;
    stack.wait_state("mail", "arrives", "done", SOON).await;
    stack.wait_state("mail", "second", "done", SOON).await;
    stack.accept(&json!({"topic": "print", "id": "unprintable"})).await;
    let reserved = stack.reserve_one("print", &json!({"ttr": "10s", "wait": "10s"})).await;
    stack.settle(&reserved, "bury", &json!({"reason": "buried", "error": "no printer"})).await.expect(200);
    let daily = json!({"cron": "0 9 * * *", "time_zone": "Europe/Berlin", "job": {"topic": "report", "url": sink.url("/report")}});
    stack.put("/v1/schedules/daily-report", &daily).await.expect(201);
    stack
        .post("/v1/jobs/reschedule", &json!({"filter": {"id_prefix": "later-1"}, "delay": "2h"}))
        .await
        .expect(202);
    let refused = json!({"topic": "down", "id": "refused", "url": "http://127.0.0.1:9/", "retry": {"delays": ["1s"], "max": -1}});
    stack.accept(&refused).await;
    stack.accept(&json!({"topic": "export", "id": "waits", "url": sink.url("/export")})).await;
    stack.post_empty("/v1/topics/export/pause").await.expect(200);
}

/// Saves a screenshot below `target/screenshots`, for people.
async fn save(ui: &Dashboard, name: &str) {
    let directory = target().join("screenshots");
    std::fs::create_dir_all(&directory).expect("the directory can be made");
    let png = BASE64_STANDARD.decode(ui.browser.screenshot().await).expect("base64");
    std::fs::write(directory.join(format!("{name}.png")), png).expect("it can be written");
}

fn target() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target")
}
