//! What the overview of the dashboard calls wrong for given counts: `pages/wrong.js` runs in the page itself.

use super::dashboard::Dashboard;
use crate::prelude::*;

/// What is wrong, as the kind and the text of each sentence.
const SENTENCES: &str = "
    const { whatIsWrong } = await import('./pages/wrong.js');
    const stats = { states: { missing: 0 }, lateness_ms: { p99: null } };
    return whatIsWrong(stats, arguments[0], { now: Date.now(), scope: '' }).map(({ kind, text }) => `${kind} ${text}`);";

fn destination(host: &str, waiting: u64, paused: bool) -> Value {
    json!({"host": host, "port": 443, "waiting": waiting, "dead": 0, "paused": paused})
}

fn failing(host: &str, attempts: u64, paused: bool) -> Value {
    let failing = json!({"since": "2026-11-20T09:30:00.000Z", "last_error": "refused", "attempts": attempts});
    json!({"host": host, "port": 443, "paused": paused, "failing": failing})
}

fn topic(name: &str, ready: u64, paused: bool) -> Value {
    let states = json!({"ready": ready, "delayed": 0, "dead": 0});
    json!({"topic": name, "paused": paused, "late_ms": if ready > 0 { 60_000 } else { 0 }, "states": states})
}

async fn sentences(
    ui: &Dashboard,
    topics: &[Value],
    destinations: &[Value],
    failing: &[Value],
) -> Vec<String> {
    let page = |items: &[Value]| json!({"items": items, "next": null});
    let lists =
        json!({"topics": page(topics), "destinations": page(destinations), "failing": failing, "bulk": []});
    let found = ui.browser.run_async(SENTENCES, &[lists]).await;
    found
        .as_array()
        .expect("sentences")
        .iter()
        .map(|text| text.as_str().expect("a text").to_owned())
        .collect()
}

#[tokio::test]
async fn one_failure_is_not_wrong_and_a_pause_is_a_note() {
    let stack = StackOptions::embedded().start().await;
    let Some(ui) = Dashboard::start(&stack).await else { return };
    ui.open("#/", "page-overview").await;

    let once = [failing("once.example", 1, false)];
    assert_eq!(sentences(&ui, &[], &[], &once).await, Vec::<String>::new());
    let again = [failing("again.example", 2, false), failing("held.example", 9, true)];
    assert_eq!(sentences(&ui, &[], &[], &again).await, ["bad 1 destination fails:"]);

    let paused = [topic("held", 7, true)];
    assert_eq!(
        sentences(&ui, &paused, &[], &[]).await,
        ["note The topic held is paused, with 7 ready jobs:"]
    );
    let held = [destination("held.example", 7, true)];
    let note = "note The destination held.example:443 is paused, with 7 jobs that wait:";
    assert_eq!(
        sentences(&ui, &[topic("waits", 7, false)], &held, &[]).await,
        [note],
        "they wait for it alone"
    );
    let more = sentences(&ui, &[topic("late", 8, false)], &held, &[]).await;
    assert_eq!(more.len(), 2, "{more:?}");
    assert!(more[0].starts_with("bad The oldest ready job has waited 1 min"), "{more:?}");
    assert_eq!(more[1], note);
}
