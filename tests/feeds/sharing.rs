//! Processes share the feeds: one at a time has a feed. When it is killed, ends or stands still, another goes on.

use std::fs;

use ringback_testkit::Role;

use super::business::{Business, TOPIC, UNPAID, feeding, loaded, within};
use crate::contract::workbench::ago;
use crate::prelude::*;

const LONG: Duration = Duration::from_secs(600);

/// The indexes of the processes that have a feed, by their metrics.
async fn holders(stack: &Stack, feed: &str) -> Vec<usize> {
    let mut holders = Vec::new();
    for (number, process) in stack.feeds.iter().enumerate() {
        let lag = format!("ringback_feed_lag_seconds{{feed=\"{feed}\"}}");
        if process.metrics().await.contains(&lag) {
            holders.push(number);
        }
    }
    holders
}

/// The index of the process that has a feed, once exactly one has it.
pub(super) async fn holder(stack: &Stack, feed: &str) -> usize {
    eventually(SOON, "one process has the feed", async || match holders(stack, feed).await.as_slice() {
        [one] => Ok(*one),
        other => Err(format!("{other:?}")),
    })
    .await
}

#[tokio::test]
async fn two_processes_share_the_feeds_and_the_other_goes_on_when_one_is_killed() {
    let business = Business::in_postgres().await;
    let sink = Sink::start().await;
    business.insert(&sink, &[("a", ago(LONG))]).await;
    let feed = |name: &str| {
        format!(
            "[[feed]]\nname = \"{name}\"\nsource = \"{}\"\ntopic = \"{name}\"\nevery = \"1s\"\nquery = \"{UNPAID}\"\n",
            business.database.url()
        )
    };
    // So many feeds that a process that starts a little later gets some.
    let names = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"];
    let file = business.file("");
    fs::write(&file, names.map(feed).concat()).expect("a file");
    let mut stack = feeding(&file, 2).start().await;
    let mut of = [0; 2];
    for name in names {
        of[holder(&stack, name).await] += 1;
    }
    assert!(of.iter().all(|n| *n > 0), "they share: {of:?}");
    sink.wait_for_job("a", names.len(), SOON).await;
    stack.feeds.remove(0).kill();
    business.insert(&sink, &[("b", ago(LONG))]).await;
    sink.wait_for_job("b", names.len(), SOON).await;
    for name in names {
        assert_eq!(holder(&stack, name).await, 0);
    }
    assert_eq!(sink.arrivals_of("a").len(), names.len(), "once for each topic");
}

#[tokio::test]
async fn a_process_that_ends_gives_its_feeds_to_others() {
    let business = Business::in_postgres().await;
    let sink = Sink::start().await;
    business.insert(&sink, &[("a", ago(LONG))]).await;
    // A lease that does not run out within the test.
    let options = feeding(&business.orders(), 2).role_env(Role::Feed, "RINGBACK_FEED_LOCK_TTL", "1m");
    let mut stack = options.start().await;
    let first = holder(&stack, "orders").await;
    stack.feeds[first].term();
    stack.feeds[first].wait_exit(SOON).await;
    stack.feeds.remove(first);
    business.insert(&sink, &[("b", ago(LONG))]).await;
    sink.wait_for_job("b", 1, SOON).await;
}

/// The second process stops with outdated content in its hands, and submits it when it goes on.
#[tokio::test]
async fn a_process_that_stood_still_changes_nothing_back() {
    let business = Business::in_postgres().await;
    let sink = Sink::start().await;
    business.insert(&sink, &[("a", within(LONG))]).await;
    let mut stack = feeding(&business.orders(), 0).start().await;
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    fs::write(path("plan"), "feed.before_submit stop 2\nstore.change_feed.before cut 1\n").expect("a plan");
    let spec = stack.spec(Role::Feed).env("FAULT_PLAN", &path("plan")).env("FAULT_LOG", &path("log"));
    stack.feeds.push(spec.start());
    stack.wait_state(TOPIC, "a", "delayed", SOON).await;
    business.database.execute("update orders set body = '{\"n\":2}'").await;
    eventually(SOON, "it has stopped", async || {
        fs::read_to_string(path("log")).map(drop).map_err(|error| error.to_string())
    })
    .await;
    business.database.execute("update orders set body = '{\"n\":3}'").await;
    let other = stack.spec(Role::Feed).start();
    stack.feeds.push(other);
    let (path, third) = (format!("/v1/jobs/{TOPIC}/a?include=request"), json!({"n": 3}));
    let is_third = |job: &Value| job["request"]["body"] == third;
    stack.wait_get(&path, SOON, is_third).await;
    stack.feeds[0].cont();
    stack.feeds[1].wait_log("loads all rows again", SOON).await;
    stack.wait_get(&path, SOON, is_third).await;
    assert_eq!(loaded(&stack.feeds[1], "replaced").await, 2, "it was changed back once");
}
