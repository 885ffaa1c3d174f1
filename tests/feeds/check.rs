//! `ringback-feed check` shows jobs that a feed would load and mistakes in its file, and submits and removes nothing. A
//! feed whose jobs the store would forget too early does not start.

use std::process::Output;
use std::time::Duration;

use ringback_testkit::{Role, Sink, Stack};

use super::business::{Business, TOPIC, UNPAID, feeding, within};
use crate::contract::workbench::ago;

const LONG: Duration = Duration::from_secs(600);

async fn check(stack: &Stack, file: &str) -> (Output, String) {
    let command = stack.spec(Role::Feed).arg("check").arg(file).command();
    let output = tokio::process::Command::from(command).output().await.expect("it runs");
    let text = String::from_utf8(output.stdout.clone()).expect("text");
    (output, text)
}

#[tokio::test]
async fn ten_jobs_of_each_query_are_shown_and_nothing_is_submitted() {
    for business in Business::each().await {
        let sink = Sink::start().await;
        let ids: Vec<_> = (0..15).map(|n| format!("o-{n:02}")).collect();
        let orders: Vec<_> = ids.iter().map(|id| (id.as_str(), within(LONG))).collect();
        business.insert(&sink, &orders).await;
        business.insert(&sink, &[("paid", ago(LONG))]).await;
        business
            .database
            .execute(&format!("update orders set paid_at = '{}' where id = 'paid'", ago(LONG)))
            .await;
        let file = business.orders();
        let stack = feeding(&file, 0).start().await;
        let (output, text) = check(&stack, &file).await;
        assert!(output.status.success(), "{output:?}");
        assert_eq!(text.lines().filter(|line| line.contains("\"id\":\"o-")).count(), 10, "{text}");
        assert!(
            text.contains("o-09") && !text.contains("o-10") && text.lines().any(|line| line == "  paid"),
            "{text}"
        );
        assert_eq!(stack.get("/v1/jobs").await.expect(200)["items"].as_array().map(Vec::len), Some(0));
        // A row that is not a job, and the status that says so.
        business.database.execute("update orders set url = 'ftp://x/' where id = 'o-03'").await;
        let (output, text) = check(&stack, &file).await;
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.lines().any(|line| line.contains("wrong: row o-03: url")), "{text}");
    }
}

#[tokio::test]
async fn mistakes_of_the_file_are_named_at_once_and_a_query_is_tried() {
    let business = Business::in_postgres().await;
    let stack = Stack::options().env("RINGBACK_KEEP_DONE", "2h").start().await;
    let file = business.file("query = \"select 1\"\nwindow = \"never\"\n");
    let (output, _) = check(&stack, &file).await;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(64), "{errors}");
    assert!(errors.contains(":after") && errors.contains("never") && errors.contains("orders"), "{errors}");
    let file = business.file(&format!("query = \"{}\"\n", UNPAID.replace("from orders", "from odrers")));
    let (output, text) = check(&stack, &file).await;
    assert!(output.status.code() == Some(1) && text.contains("odrers") && text.contains(TOPIC), "{text}");
}

#[tokio::test]
async fn a_feed_whose_jobs_would_be_forgotten_early_does_not_start() {
    let business = Business::in_postgres().await;
    let file = business.orders();
    let stack = Stack::start().await;
    let mut feed = stack.spec(Role::Feed).arg(&file).start();
    let status = feed.wait_exit(Duration::from_secs(20)).await;
    assert_eq!(status.code(), Some(64));
    let log = feed.log();
    assert!(log.contains("RINGBACK_KEEP_DONE") && log.contains("30m 1s"), "{log}");
}

#[tokio::test]
async fn rows_of_an_outbox_are_shown_and_stay() {
    let business = Business::in_postgres().await;
    business.database.execute(include_str!("../../deploy/feed/outbox.sql")).await;
    let rows = "insert into ringback_outbox (id, url) values ('a', 'http://127.0.0.1:9/'), ('b', 'ftp://x/')";
    business.database.execute(rows).await;
    let file = business.file("outbox = \"ringback_outbox\"\n");
    let stack = feeding(&file, 0).start().await;
    let (output, text) = check(&stack, &file).await;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text.contains("\"id\":\"a\"") && text.contains("wrong: row b: url"), "{text}");
    let left = business.database.rows("select id from ringback_outbox where error is null order by id").await;
    assert_eq!(left, [["a"], ["b"]]);
}
