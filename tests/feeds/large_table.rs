//! Loads a large table with two feed processes, of which one is killed, while orders are inserted, changed and paid.
//! `RINGBACK_TEST_ORDERS` is the number of orders and `RINGBACK_TEST_ORDERS_WITHIN` the seconds in which a tenth of them
//! is due; by default there are few.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use ringback_testkit::Role;

use super::business::{Business, TOPIC, feeding, rows};
use super::sharing::holder;
use crate::prelude::*;

/// The number of orders; `RINGBACK_TEST_ORDERS`, by default 20,000. A tenth of them is due within the window.
fn orders() -> usize {
    ringback_testkit::variable("RINGBACK_TEST_ORDERS").unwrap_or(20_000)
}

/// The seconds over which due times are spread: `RINGBACK_TEST_ORDERS_WITHIN`, by default 10, and more for many orders.
fn spread() -> usize {
    ringback_testkit::variable("RINGBACK_TEST_ORDERS_WITHIN").unwrap_or(10 + orders() / 10_000)
}

#[tokio::test]
async fn orders_that_are_due_are_all_loaded_while_others_come_change_and_go() {
    let business = Business::in_postgres().await;
    let sink = Sink::start().await;
    let (all, due) = (orders(), orders() / 10);
    let long = Duration::from_secs((30 + all / 2_000 + spread()) as u64);
    // Due orders lie between others. Their times are spread over a part of the hour, so that the test waits for them.
    let (first, apart) = (8 + all / 20_000, spread() * 1_000_000 / due);
    fill(&business, &sink, (all, first, apart)).await;
    // A pass over many orders takes a while, and what has changed is loaded by the next one.
    let every = if all > 100_000 { 10 } else { 1 };
    let file = business.orders();
    let text = fs::read_to_string(&file).expect("a file");
    fs::write(&file, text.replace("every = \"1s\"", &format!("every = \"{every}s\""))).expect("a file");
    let soon = format!("now() + interval '{} seconds' + random() * interval '30 seconds'", 2 * every + 10);
    // The other process takes over well before the former due times of changed orders.
    let options = feeding(&file, 2).role_env(Role::Feed, "RINGBACK_FEED_LOCK_TTL", "1s");
    let mut stack = options.start().await;
    eventually(long, "half of the orders are loaded", async || {
        let loaded = rows(&stack, "submitted").await;
        if loaded >= due as u64 / 2 { Ok(()) } else { Err(loaded) }
    })
    .await;
    change(&business, &soon).await;
    let changed: BTreeSet<_> = ids(&business, "body->>'n' = '2'").await.into_iter().collect();
    let paid = ids(&business, "paid_at is not null").await;
    let holder = holder(&stack, "orders").await;
    stack.feeds.remove(holder).kill();
    let wanted = ids(&business, "paid_at is null and due_at < now() + interval '1 hour'").await;
    assert!(wanted.len() > due / 2 && !changed.is_empty() && !paid.is_empty());
    eventually(4 * long, "all orders have arrived", async || {
        let arrived = sink.counts();
        let missing: Vec<_> = wanted.iter().filter(|id| !arrived.contains_key(*id)).collect();
        if missing.is_empty() {
            Ok(())
        } else {
            Err(format!("{} are missing: {:?}", missing.len(), missing.first()))
        }
    })
    .await;
    let counts = sink.counts();
    assert!(counts.values().all(|count| *count == 1), "each once");
    let times: BTreeMap<String, i64> = business
        .database
        .rows("select id, (extract(epoch from due_at) * 1000)::bigint from orders where due_at < now() + interval '1 hour'")
        .await
        .into_iter()
        .map(|row| (row[0].clone(), row[1].parse().expect("ms")))
        .collect();
    let mut late = Vec::new();
    for arrival in sink.arrivals() {
        let id = arrival.job_id().to_owned();
        assert!(arrival.at.as_millisecond() + 1 >= times[&id], "{id} is early");
        late.push(arrival.at.as_millisecond() - times[&id]);
        if changed.contains(&id) {
            let body: Value = serde_json::from_slice(&arrival.body).expect("JSON");
            assert_eq!(body, json!({"n": 2}), "{id}");
        }
    }
    show(&mut late);
    for id in paid.iter().take(20) {
        let (status, job) = stack.job(TOPIC, id).await;
        assert!(status == 404 || job["state"] == "cancelled", "{id}: {job}");
        assert!(!counts.contains_key(id), "{id} was paid");
    }
    stack.wait_count("done", counts.len() as u64, SOON).await;
}

/// Adds `all` orders. Every tenth is due `first` seconds from now or later, each `apart` microseconds after the one
/// before; the others are due in two days.
async fn fill(business: &Business, sink: &Sink, (all, first, apart): (usize, usize, usize)) {
    let url = sink.url("/hook");
    let sql = format!(
        "insert into orders (id, due_at, url, body)
         select 'o-' || n, case when n % 10 = 0
             then now() + interval '{first} seconds' + n / 10 * {apart} * interval '1 microsecond'
             else now() + interval '2 days' end, '{url}', '{{\"n\":1}}' from generate_series(1, {all}) n;
         create index on orders (due_at); analyze orders"
    );
    business.database.execute(&sql).await;
}

/// Changes some orders, makes others due that were not, and marks some as paid.
async fn change(business: &Business, soon: &str) {
    let changes = [
        format!(
            "update orders set body = '{{\"n\":2}}', due_at = {soon} where id like '%70'
             and due_at between now() + interval '5 seconds' and now() + interval '1 day'"
        ),
        format!("update orders set due_at = {soon} where id like '%71'"),
        "update orders set paid_at = now() where id like '%30' and due_at > now() + interval '6 seconds'"
            .to_owned(),
    ];
    for change in changes {
        business.database.execute(&change).await;
    }
}

/// Prints the median, p99 and longest lateness of the jobs.
#[expect(clippy::print_stderr, reason = "figures for who asks for a long run")]
fn show(late: &mut [i64]) {
    late.sort_unstable();
    let at = |part: usize| late[(late.len() - 1) * part / 100];
    eprintln!("{} orders: p50 {} ms, p99 {} ms, longest {} ms", late.len(), at(50), at(99), at(100));
}

async fn ids(business: &Business, condition: &str) -> Vec<String> {
    let rows = business.database.rows(&format!("select id from orders where {condition}")).await;
    rows.into_iter().map(|mut row| row.remove(0)).collect()
}
