//! A feed process is killed at each of its crash points, and its connection to the store is cut at each call: each
//! order and each row of the outbox is delivered once.

use std::fs;

use ringback_testkit::Role;

use super::business::{Business, feeding};
use crate::contract::workbench::ago;
use crate::prelude::*;

/// The crash points between the steps of a feed process.
const STEPS: [&str; 5] =
    ["feed.before_submit", "feed.after_submit", "feed.after_page", "feed.before_step", "feed.before_delete"];
const CALLS: [&str; 2] = ["hold_feed", "replace"];

/// The actions at crash points: each is a line of a fault plan without the number of the pass.
fn actions() -> Vec<String> {
    let calls = CALLS.iter().flat_map(|call| ["before", "after"].map(|side| format!("store.{call}.{side}")));
    let steps = STEPS.iter().map(|step| format!("{step} kill"));
    let calls = calls.flat_map(|point| ["kill", "cut"].map(|action| format!("{point} {action}")));
    steps.chain(calls).collect()
}

#[tokio::test]
async fn each_row_is_a_job_wherever_a_process_is_killed() {
    let business = Business::in_postgres().await;
    business.database.execute(include_str!("../../deploy/feed/outbox.sql")).await;
    let sink = Sink::start().await;
    let file = business.orders();
    let outbox = format!(
        "[[feed]]\nname = \"outbox\"\nsource = \"{}\"\ntopic = \"outbox\"\nevery = \"1s\"\noutbox = \"ringback_outbox\"\n",
        business.database.url()
    );
    fs::write(&file, fs::read_to_string(&file).expect("a file") + &outbox).expect("a file");
    let mut stack = feeding(&file, 0).start().await;
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    let plan: String = actions().iter().map(|action| format!("{action} 1\n")).collect();
    fs::write(path("plan"), plan).expect("a plan");
    let spec = stack.spec(Role::Feed).env("FAULT_PLAN", &path("plan")).env("FAULT_LOG", &path("log"));
    let (mut feed, mut orders) = (spec.start(), 0);
    eventually(6 * SOON, "everything is done", async || {
        if feed.exit_status().is_some() {
            feed.restart();
        }
        let ids = [orders, orders + 1].map(|n| format!("o-{n}"));
        business
            .insert(&sink, &[(ids[0].as_str(), ago(Duration::ZERO)), (ids[1].as_str(), ago(Duration::ZERO))])
            .await;
        let row = format!(
            "insert into ringback_outbox (id, url) values ('out-{orders}', '{}'), ('out-{}', '{0}')",
            sink.url("/hook"),
            orders + 1
        );
        business.database.execute(&row).await;
        orders += 2;
        let log = fs::read_to_string(path("log")).unwrap_or_default();
        let left: Vec<_> =
            actions().into_iter().filter(|action| !log.lines().any(|line| line == action)).collect();
        if left.is_empty() { Ok(()) } else { Err(left.join(", ")) }
    })
    .await;
    feed.kill();
    feed.restart();
    stack.feeds.push(feed);
    stack.feeds[0].ready(SOON).await;
    let ids: Vec<_> = (0..orders).flat_map(|n| [format!("o-{n}"), format!("out-{n}")]).collect();
    sink.wait_for_jobs(&ids, 1, 2 * SOON).await;
    assert_eq!(sink.counts().len(), ids.len());
    assert!(sink.counts().values().all(|count| *count == 1), "{:?}", sink.counts());
    eventually(SOON, "the outbox is empty", async || {
        let left = business.database.rows("select id from ringback_outbox").await;
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await;
}
