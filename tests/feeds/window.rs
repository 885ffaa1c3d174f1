//! Rows of a query are delivered at their times, as they are then: rows inserted, changed or deleted meanwhile count,
//! also while the feed or its database was away.

use ringback_testkit::Role;

use super::business::{Business, TOPIC, UNPAID, feeding, rows, set_position, wait_rows, within};
use super::database_faults::says;
use crate::archive::database::Database;
use crate::contract::workbench::ago;
use crate::prelude::*;

const LONG: Duration = Duration::from_secs(600);
/// How long it may take until it is noticed that a process is gone.
const GONE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn orders_are_delivered_at_their_times_as_they_are_then() {
    for business in Business::each().await {
        let sink = Sink::start().await;
        // This order became due while no process ran.
        business.insert(&sink, &[("due", ago(LONG))]).await;
        business.insert(&sink, &[("later", within(LONG)), ("far", within(3 * LONG * 3))]).await;
        let stack = feeding(&business.orders(), 1).start().await;
        let soon = within(Duration::from_secs(10));
        business.insert(&sink, &[("soon", soon), ("changed", soon), ("paid", soon)]).await;
        wait_rows(&stack, "submitted", 5).await;
        business.insert(&sink, &[("new", soon)]).await;
        let changes = [
            "update orders set body = '{\"n\":2}' where id in ('changed', 'later')",
            &format!("update orders set paid_at = '{}' where id = 'paid'", within(Duration::ZERO)),
        ];
        for change in changes {
            business.database.execute(change).await;
        }
        wait_rows(&stack, "replaced", 2).await;
        wait_rows(&stack, "cancelled", 1).await;
        sink.wait_for_jobs(&["due", "soon", "changed", "new"], 1, SOON).await;
        for arrival in sink.arrivals() {
            let is_early =
                arrival.job_id() != "due" && (arrival.at.as_millisecond() as u64) < soon.as_millis();
            assert!(!is_early, "{} arrived at {} before {soon}", arrival.job_id(), arrival.at);
            let n = if arrival.job_id() == "changed" { 2 } else { 1 };
            let body: serde_json::Value = serde_json::from_slice(&arrival.body).expect("JSON");
            assert_eq!(body, json!({"n": n}), "{}", arrival.job_id());
        }
        let (status, job) = stack.job(TOPIC, "paid").await;
        assert_eq!((status, &job["state"]), (200, &json!("cancelled")), "{job}");
        let later = stack.get(&format!("/v1/jobs/{TOPIC}/later?include=request")).await.expect(200);
        assert_eq!(later["request"]["body"], json!({"n": 2}));
        assert_eq!(stack.job(TOPIC, "far").await.0, 404, "beyond the window");
        assert_eq!(sink.arrivals().len(), 4, "each once");
    }
}

#[tokio::test]
async fn rows_that_do_not_change_are_read_again_and_not_submitted() {
    for business in Business::each().await {
        let sink = Sink::start().await;
        let ids: Vec<_> = (0..250).map(|n| format!("o-{n:03}")).collect();
        let orders: Vec<_> = ids.iter().map(|id| (id.as_str(), within(LONG))).collect();
        business.insert(&sink, &orders).await;
        let stack = feeding(&business.orders(), 1).start().await;
        wait_rows(&stack, "submitted", 250).await;
        // The first pass is complete once rows are read again.
        wait_rows(&stack, "unchanged", 250).await;
        let calls = stack.redis().watch_calls().await;
        wait_rows(&stack, "unchanged", 750).await;
        let submits: Vec<_> =
            calls.by_function().into_keys().filter(|name| name.ends_with("_replace")).collect();
        assert_eq!(submits, [""; 0], "nothing is submitted");
        assert_eq!((rows(&stack, "submitted").await, stack.count_in("delayed").await), (250, 250));
    }
}

#[tokio::test]
async fn a_job_that_has_ended_is_not_delivered_again_whatever_becomes_of_its_row() {
    let business = Business::in_postgres().await;
    let sink = Sink::start().await;
    business.insert(&sink, &[("done", ago(Duration::from_secs(1))), ("cancelled", within(LONG))]).await;
    let mut stack = feeding(&business.orders(), 1).start().await;
    stack.wait_state(TOPIC, "done", "done", SOON).await;
    wait_rows(&stack, "submitted", 2).await;
    assert_eq!(stack.cancel(TOPIC, "cancelled").await.0, 200);
    // A process that has just begun remembers nothing.
    stack.feeds[0].kill();
    stack.feeds[0].restart();
    stack.feeds[0].ready(SOON).await;
    wait_rows(&stack, "unchanged", 4).await;
    business.database.execute("update orders set body = '{\"n\":2}'").await;
    wait_rows(&stack, "kept", 2).await;
    for id in ["done", "cancelled"] {
        assert_eq!(stack.job(TOPIC, id).await.1["state"], json!(id));
    }
    assert_eq!(sink.arrivals().len(), 1);
}

#[tokio::test]
async fn a_process_that_forgets_ended_jobs_too_early_is_noticed_until_it_is_gone() {
    let (business, sink) = (Business::in_postgres().await, Sink::start().await);
    let stack = feeding(&business.orders(), 1).start().await;
    let shorter = stack.spec(Role::Carrier).env("RINGBACK_KEEP_DONE", "20m").start();
    says(&stack.feeds[0], 503, "another process of the installation has RINGBACK_KEEP_DONE=20m").await;
    let log = stack.feeds[0].log();
    assert!(log.contains("jobs of the feed may be forgotten too early"), "{log}");
    // The feed loads its rows all the same.
    business.insert(&sink, &[("a", within(LONG))]).await;
    wait_rows(&stack, "submitted", 1).await;
    drop(shorter);
    let log = "all processes keep ended jobs for as long as the feed needs";
    stack.feeds[0].wait_log(log, GONE).await;
    says(&stack.feeds[0], 200, "this process loads it").await;
}

#[tokio::test]
async fn a_change_is_kept_out_if_that_is_wanted() {
    let business = Business::in_postgres().await;
    let sink = Sink::start().await;
    business.insert(&sink, &[("a", within(LONG))]).await;
    let stack =
        feeding(&business.file(&format!("query = \"{UNPAID}\"\nchanged = \"keep\"\n")), 1).start().await;
    wait_rows(&stack, "submitted", 1).await;
    business.database.execute("update orders set body = '{\"n\":2}'").await;
    wait_rows(&stack, "kept", 1).await;
    let job = stack.get(&format!("/v1/jobs/{TOPIC}/a?include=request")).await.expect(200);
    assert_eq!(job["request"]["body"], json!({"n": 1}));
}

#[tokio::test]
async fn rows_of_a_transaction_that_commits_late_are_delivered() {
    let business = Business::in_postgres().await;
    let sink = Sink::start().await;
    business.insert(&sink, &[("a", within(LONG))]).await;
    let stack = feeding(&business.orders(), 1).start().await;
    wait_rows(&stack, "unchanged", 2).await;
    // Inserts a row that is ten minutes old, as if its transaction had just ended.
    business.insert(&sink, &[("late", ago(LONG))]).await;
    sink.wait_for_job("late", 1, SOON).await;
}

#[tokio::test]
async fn what_becomes_due_while_the_feed_or_its_database_is_away_is_delivered() {
    let mut business = Business::in_postgres().await;
    let sink = Sink::start().await;
    business.insert(&sink, &[("a", ago(LONG / 10))]).await;
    let mut stack = feeding(&business.orders(), 1).start().await;
    sink.wait_for_job("a", 1, SOON).await;
    wait_rows(&stack, "unchanged", 1).await;
    stack.feeds[0].term();
    stack.feeds[0].wait_exit(SOON).await;
    // Sets the feed's position, as if no process had loaded it for forty minutes.
    set_position(&stack, ago(Duration::from_secs(40 * 60))).await;
    business.insert(&sink, &[("b", ago(Duration::from_secs(50 * 60)))]).await;
    let Database::Postgres(server) = &mut business.database else { unreachable!() };
    server.kill();
    stack.feeds[0].restart();
    stack.feeds[0].wait_log("the feed cannot be loaded", SOON).await;
    server.restart().await;
    sink.wait_for_job("b", 1, SOON).await;
    wait_rows(&stack, "unchanged", 2).await;
    assert_eq!(sink.arrivals_of("a").len(), 1, "it is known still");
}

#[tokio::test]
async fn a_time_that_moves_beyond_the_window_counts_where_the_query_yields_changes() {
    let business = Business::in_postgres().await;
    let sink = Sink::start().await;
    business.database.execute("alter table orders add changed_at timestamptz").await;
    business.insert(&sink, &[("a", within(Duration::from_secs(600)))]).await;
    let moves = UNPAID.replace(
        "due_at >= :from and due_at < :to",
        "(due_at >= :from and due_at < :to or changed_at >= :from and due_at >= :to)",
    );
    let stack = feeding(&business.file(&format!("query = \"{moves}\"\n")), 1).start().await;
    wait_rows(&stack, "submitted", 1).await;
    let far = within(2 * 3600 * Duration::from_secs(1));
    let change = format!("update orders set due_at = '{far}', changed_at = '{}'", within(Duration::ZERO));
    business.database.execute(&change).await;
    wait_rows(&stack, "replaced", 1).await;
    let job = stack.job(TOPIC, "a").await.1;
    assert_eq!((&job["state"], &job["due_at"]), (&json!("delayed"), &json!(far.to_string())), "{job}");
}
