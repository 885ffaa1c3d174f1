//! Several processes share the feeds: each feed has one of them at a time. When it is killed or stands still another goes on.

use std::time::Duration;

use ringback_testkit::{Role, Sink, Stack, eventually};
use serde_json::json;

use super::business::{Business, TOPIC, UNPAID, ago, feeding, within};
use crate::sample_jobs::SOON;

const LONG: Duration = Duration::from_secs(600);

/// The numbers of the processes that have a feed.
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

/// The number of the process that has a feed, once one has it.
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
    let names = ["one", "two", "three", "four"];
    let file = business.file("");
    std::fs::write(&file, names.map(feed).concat()).expect("a file");
    let mut stack = feeding(&file, 2).start().await;
    let mut of = [0; 2];
    for name in names {
        of[holder(&stack, name).await] += 1;
    }
    assert!(of.iter().all(|n| *n > 0), "they share: {of:?}");
    sink.wait_for_job("a", 4, SOON).await;
    stack.feeds.remove(0).kill();
    business.insert(&sink, &[("b", ago(LONG))]).await;
    sink.wait_for_job("b", 4, SOON).await;
    for name in names {
        assert_eq!(holder(&stack, name).await, 0);
    }
    assert_eq!(sink.arrivals_of("a").len(), 4, "once for each topic");
}

#[tokio::test]
async fn a_process_that_ends_gives_its_feeds_to_others() {
    let business = Business::in_postgres().await;
    let sink = Sink::start().await;
    business.insert(&sink, &[("a", ago(LONG))]).await;
    // A lease that does not run out within the test.
    let options = feeding(&business.orders(), 2).role_env(Role::Feed, "RINGBACK_LOCK_TTL", "1m");
    let mut stack = options.start().await;
    let first = holder(&stack, "orders").await;
    stack.feeds[first].term();
    stack.feeds[first].wait_exit(SOON).await;
    stack.feeds.remove(first);
    business.insert(&sink, &[("b", ago(LONG))]).await;
    sink.wait_for_job("b", 1, SOON).await;
}

#[tokio::test]
async fn a_process_that_stood_still_changes_nothing_back() {
    let business = Business::in_postgres().await;
    let sink = Sink::start().await;
    business.insert(&sink, &[("a", within(LONG))]).await;
    let mut stack = feeding(&business.orders(), 2).start().await;
    let first = holder(&stack, "orders").await;
    stack.wait_state(TOPIC, "a", "delayed", SOON).await;
    stack.feeds[first].stop();
    business.database.execute("update orders set body = '{\"n\":2}'").await;
    let is = async |n: u64| {
        let job = stack.get(&format!("/v1/jobs/{TOPIC}/a?include=request")).await.expect(200);
        if job["request"]["body"] == json!({"n": n}) { Ok(()) } else { Err(job) }
    };
    eventually(SOON, "the other process has loaded the change", async || is(2).await).await;
    stack.feeds[first].cont();
    let other = 1 - first;
    eventually(SOON, "the process that stood still says so", async || {
        let log = stack.feeds[other].log();
        if log.contains("loads all rows again") { Ok(()) } else { Err(log) }
    })
    .await;
    assert_eq!(holder(&stack, "orders").await, other);
    let job = stack.get(&format!("/v1/jobs/{TOPIC}/a?include=request")).await.expect(200);
    assert_eq!(job["request"]["body"], json!({"n": 2}));
}
