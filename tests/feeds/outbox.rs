//! An outbox in PostgreSQL: a row that a business transaction inserts is a job as soon as that commits.

use ringback_testkit::{Role, Sink, Stack, eventually};

use super::business::{Business, feeding, wait_rows};
use crate::archive::database::Database;
use crate::sample_jobs::SOON;

const TABLE: &str = include_str!("../../deploy/feed/outbox.sql");

/// A business database with an outbox, and a stack whose feed listens to it and reads it unasked only once a day.
async fn outbox(more: &str) -> (Business, Stack, Sink) {
    let business = Business::in_postgres().await;
    business.database.execute(TABLE).await;
    let file = business.file(&format!("outbox = \"ringback_outbox\"\n{more}"));
    let text = std::fs::read_to_string(&file).expect("a file").replace("every = \"1s\"", "every = \"1d\"");
    std::fs::write(&file, text).expect("a file");
    let stack = feeding(&file, 1).start().await;
    eventually(SOON, "the feed listens", async || {
        let metrics = stack.feeds[0].metrics().await;
        if metrics.contains("ringback_feed_lag_seconds{feed=\"orders\"}") { Ok(()) } else { Err(metrics) }
    })
    .await;
    (business, stack, Sink::start().await)
}

fn insert(sink: &Sink, id: &str) -> String {
    format!(
        "insert into ringback_outbox (id, url, body) values ('{id}', '{}', '{{\"id\":\"{id}\"}}')",
        sink.url("/hook")
    )
}

async fn left(business: &Business, sql: &str) -> Vec<String> {
    business.database.rows(sql).await.into_iter().map(|row| row.join(" ")).collect()
}

#[tokio::test]
async fn a_row_is_delivered_once_its_transaction_commits_and_then_it_is_gone() {
    let (business, stack, sink) = outbox("").await;
    business.database.execute(&format!("begin; {}; commit", insert(&sink, "a"))).await;
    business.database.execute(&format!("begin; {}; rollback", insert(&sink, "never"))).await;
    let many: Vec<_> = (0..1200).map(|n| insert(&sink, &format!("m-{n}"))).collect();
    business.database.execute(&many.join("; ")).await;
    sink.wait_for(1201, SOON).await;
    eventually(SOON, "the table is empty", async || {
        let left = left(&business, "select id from ringback_outbox").await;
        if left.is_empty() { Ok(()) } else { Err(left.join(", ")) }
    })
    .await;
    business.database.execute(&insert(&sink, "last")).await;
    sink.wait_for_job("last", 1, SOON).await;
    assert!(sink.arrivals_of("never").is_empty() && sink.counts().values().all(|count| *count == 1));
    assert_eq!(stack.count_in("done").await, 1202);
}

#[tokio::test]
async fn rows_may_stay_marked_and_bad_ones_say_why() {
    let (business, mut stack, sink) = outbox("loaded = \"mark\"\n").await;
    let bad = "insert into ringback_outbox (id, url) values ('bad id', 'http://a.example/'), ('bad-url', 'ftp://a/')";
    business.database.execute(bad).await;
    // The error contains a character that no text in PostgreSQL can have.
    let nul = "alter table ringback_outbox add retry json;
        insert into ringback_outbox (id, url, retry) values ('nul', 'http://a.example/', '{\"\\u0000\":1}')";
    business.database.execute(nul).await;
    business.database.execute(&insert(&sink, "good")).await;
    sink.wait_for_job("good", 1, SOON).await;
    stack.wait_count("done", 1, SOON).await;
    // The same id with other content, after its job has ended.
    business.database.execute(&insert(&sink, "good").replace("{\"id\":", "{\"n\":")).await;
    wait_rows(&stack, "refused", 4).await;
    let sql =
        "select id, loaded_at is not null, coalesce(left(error, 3), '') from ringback_outbox order by seq";
    eventually(SOON, "all rows are marked", async || {
        let rows = left(&business, sql).await;
        if rows == ["bad id f id:", "bad-url f url", "nul f ret", "good t ", "good f ano"] {
            Ok(())
        } else {
            Err(rows.join(", "))
        }
    })
    .await;
    // A row that was mended is loaded; here when the feed begins again, since an update notifies nobody.
    business
        .database
        .execute(&format!(
            "update ringback_outbox set error = null, url = '{}', id = 'mended' where id = 'bad id'",
            sink.url("/hook")
        ))
        .await;
    stack.feeds[0].term();
    stack.feeds[0].wait_exit(SOON).await;
    stack.feeds[0].restart();
    sink.wait_for_job("mended", 1, SOON).await;
    assert_eq!(sink.arrivals_of("good").len(), 1);
}

#[tokio::test]
async fn rows_wait_while_the_store_is_away_and_while_the_database_restarts() {
    let (mut business, mut stack, sink) = outbox("").await;
    let notifier = stack.notifiers.remove(0);
    drop(notifier);
    stack.redis_mut().stop();
    business.database.execute(&insert(&sink, "a")).await;
    stack.feeds[0].wait_log("cannot be loaded", SOON).await;
    assert_eq!(left(&business, "select id from ringback_outbox").await, ["a"]);
    stack.redis_mut().cont();
    let Database::Postgres(server) = &mut business.database else { unreachable!() };
    server.kill();
    server.restart().await;
    business.database.execute(&insert(&sink, "b")).await;
    stack.add(Role::Notifier).await;
    sink.wait_for_jobs(&["a", "b"], 1, 2 * SOON).await;
}
