//! Wrong rows and queries: a bad row is left out, counted and logged, and its feed goes on. Guard, topic policy,
//! tenant and quota hold for rows. A feed whose jobs could be delivered again waits for a decision.

use http::Method;
use ringback_testkit::Role;

use super::business::{Business, TOPIC, feeding, rows, set_position, wait_rows, within};
use crate::contract::workbench::ago;
use crate::http::tenants::{Caller, ROOT};
use crate::prelude::*;

const LONG: Duration = Duration::from_secs(600);

#[tokio::test]
async fn rows_that_are_no_jobs_are_left_out_and_the_others_loaded() {
    for business in Business::each().await {
        let sink = Sink::start().await;
        business.insert(&sink, &[("a", within(LONG)), ("b b", within(LONG)), ("z", ago(LONG))]).await;
        let wrong = "insert into orders (id, due_at, url, body) select 'no-url', due_at, 'ftp://x/', body from orders where id = 'a'";
        business.database.execute(wrong).await;
        let template = "insert into orders (id, due_at, url, body) select 'no-host', due_at, 'http://{{host}}/', body from orders where id = 'a'";
        business.database.execute(template).await;
        let stack = feeding(&business.orders(), 1).start().await;
        sink.wait_for_job("z", 1, SOON).await;
        wait_rows(&stack, "refused", 6).await;
        assert_eq!((rows(&stack, "submitted").await, stack.job(TOPIC, "a").await.0), (2, 200));
        let log = stack.feeds[0].log();
        for (id, why) in [("b b", "id"), ("no-url", "url"), ("no-host", "url")] {
            let lines: Vec<_> =
                log.lines().filter(|line| line.contains(id) && line.contains("not a job")).collect();
            assert!(lines.len() == 1 && lines[0].contains(why), "{id}: {lines:?}\n{log}");
        }
        // Once a row is mended, it is loaded.
        business.database.execute("delete from orders where id = 'b b'").await;
        business.database.execute("update orders set url = (select url from orders where id = 'a')").await;
        wait_rows(&stack, "submitted", 4).await;
    }
}

#[tokio::test]
async fn the_guard_and_the_topic_policy_hold_for_rows_too() {
    let business = Business::in_postgres().await;
    let sink = Sink::start().await;
    business.insert(&sink, &[("inside", within(LONG))]).await;
    business.insert(&sink, &[("by-policy", ago(LONG))]).await;
    business.database.execute("update orders set url = 'http://10.1.2.3/' where id = 'inside'").await;
    business.database.execute("update orders set url = null where id = 'by-policy'").await;
    let options = feeding(&business.orders(), 0).guarded();
    let mut stack = options.env("RINGBACK_EGRESS_ALLOW", "127.0.0.0/8").start().await;
    stack.set_policy(TOPIC, &json!({"url": sink.url("/policy")})).await.expect(201);
    stack.add(Role::Feed).await;
    let arrivals = sink.wait_for_job("by-policy", 1, SOON).await;
    assert_eq!(arrivals[0].path, "/policy");
    wait_rows(&stack, "refused", 1).await;
    assert!(stack.feeds[0].log().contains("10.1.2.3"), "{}", stack.feeds[0].log());
}

#[tokio::test]
async fn a_tenant_has_its_topics_and_its_quota() {
    let business = Business::in_postgres().await;
    let sink = Sink::start().await;
    let ids: Vec<_> = (0..60).map(|n| format!("o-{n:02}")).collect();
    let orders: Vec<_> = ids.iter().map(|id| (id.as_str(), ago(Duration::from_secs(1)))).collect();
    business.insert(&sink, &orders).await;
    let file = business.file(&format!("tenant = \"acme\"\nquery = \"{}\"\n", super::business::UNPAID));
    let mut stack = feeding(&file, 0).role_env(Role::Api, "RINGBACK_ROOT_KEY", ROOT).start().await;
    let (operator, quota) = (Caller::root(None), json!({"jobs_per_second": 10}));
    operator.send(&stack, Method::PUT, "/v1/quotas/acme", Some(&quota)).await.expect(201);
    let begun = tokio::time::Instant::now();
    stack.add(Role::Feed).await;
    sink.wait_for_jobs(&ids, 1, 2 * SOON).await;
    assert!(begun.elapsed() > Duration::from_secs(3), "60 jobs at 10 a second");
    let of = async |tenant| {
        let caller = Caller::root(tenant);
        caller.send(&stack, Method::GET, "/v1/stats", None).await.expect(200)["states"]["done"].clone()
    };
    eventually(SOON, "all are jobs of the tenant", async || match of(Some("acme")).await {
        done if done == 60 => Ok(()),
        done => Err(done),
    })
    .await;
    assert_eq!(of(Some("other")).await, 0);
}

#[tokio::test]
async fn a_tenant_that_has_all_its_jobs_still_has_jobs_cancelled() {
    let business = Business::in_postgres().await;
    let sink = Sink::start().await;
    let ids = ["a", "b", "c", "d", "e"];
    business.insert(&sink, &ids.map(|id| (id, within(LONG)))).await;
    let queries = format!("query = \"{}\"\ngone = \"{}\"\n", super::business::UNPAID, super::business::PAID);
    let file = business.file(&format!("tenant = \"acme\"\n{queries}"));
    let mut stack = feeding(&file, 0).role_env(Role::Api, "RINGBACK_ROOT_KEY", ROOT).start().await;
    let (operator, quota) = (Caller::root(None), json!({"jobs": 3}));
    operator.send(&stack, Method::PUT, "/v1/quotas/acme", Some(&quota)).await.expect(201);
    let feed = stack.spec(Role::Feed).start();
    stack.feeds.push(feed);
    says(&stack, "rows of the feed wait").await;
    wait_rows(&stack, "submitted", 3).await;
    // A process that remembers nothing submits all of them again.
    stack.feeds.remove(0).kill();
    let feed = stack.spec(Role::Feed).start();
    stack.feeds.push(feed);
    says(&stack, "rows of the feed wait").await;
    let paid = format!("update orders set paid_at = '{}' where id in ('a', 'b')", within(Duration::ZERO));
    business.database.execute(&paid).await;
    wait_rows(&stack, "cancelled", 2).await;
    wait_rows(&stack, "submitted", 2).await;
    let acme = Caller::root(Some("acme"));
    let states = acme.send(&stack, Method::GET, "/v1/stats", None).await.expect(200)["states"].clone();
    assert_eq!((&states["delayed"], &states["cancelled"]), (&json!(3), &json!(2)), "{states}");
}

async fn says(stack: &Stack, text: &str) {
    stack.feeds[0].wait_log(text, SOON).await;
}

#[tokio::test]
async fn a_query_that_is_wrong_is_said_and_tried_again() {
    let business = Business::in_postgres().await;
    let sink = Sink::start().await;
    business.insert(&sink, &[("a", ago(LONG)), ("b", ago(LONG))]).await;
    let query = |sql: &str| business.file(&format!("query = \"{sql}\"\n"));
    let conditions = "due_at >= :from and due_at < :to";
    for (sql, why) in [
        (
            format!("select id, due_at from nowhere where {conditions} and id > :after limit :limit"),
            "nowhere",
        ),
        (
            format!("select id, due_at, paid_at from orders where {conditions} and id > :after limit :limit"),
            "paid_at",
        ),
        (
            format!(
                "select id, due_at, url from orders where {conditions} and id >= :after order by id limit :limit"
            ),
            "id > :after",
        ),
        (
            format!(
                "select id, due_at, url from orders where {conditions} and length(id) > :after limit :limit"
            ),
            ":after is compared",
        ),
        (
            format!(
                "select length(id) + 9 - ascii(id) as id, due_at, url from orders where {conditions} and \
                 length(id) + 9 - ascii(id) > :after order by orders.id limit :limit"
            ),
            "do not ascend",
        ),
    ] {
        let mut stack = feeding(&query(&sql), 0).start().await;
        let feed = stack.spec(Role::Feed).start();
        stack.feeds.push(feed);
        says(&stack, why).await;
        assert!(stack.feeds[0].exit_status().is_none(), "it goes on");
    }
}

#[tokio::test]
async fn a_feed_that_was_away_for_longer_than_ended_jobs_are_known_waits_for_a_decision() {
    let business = Business::in_postgres().await;
    let sink = Sink::start().await;
    business.insert(&sink, &[("a", ago(LONG))]).await;
    let file = business.orders();
    let mut stack = feeding(&file, 0).start().await;
    set_position(&stack, ago(Duration::from_secs(90 * 60))).await;
    let feed = stack.spec(Role::Feed).start();
    stack.feeds.push(feed);
    says(&stack, "45m").await;
    says(&stack, "ringback-feed seek").await;
    assert_eq!(sink.seen(), 0);
    let at = ago(Duration::from_secs(15 * 60)).to_string();
    let seek = stack.spec(Role::Feed).arg("seek").arg(&file).arg("orders").arg(&at).command();
    let output = tokio::process::Command::from(seek).output().await.expect("it runs");
    assert!(output.status.success(), "{output:?}");
    sink.wait_for_job("a", 1, SOON).await;
}
