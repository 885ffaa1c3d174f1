//! The types of ids and the columns that a row may have, in both databases.

use ringback_testkit::{PostgresServer, Role};

use super::business::{Business, TOPIC, feeding, wait_rows};
use crate::archive::database::Database;
use crate::contract::workbench::ago;
use crate::prelude::*;

const ALL: &str = "due_at >= :from and due_at < :to and id > :after order by id limit :limit";

#[tokio::test]
async fn a_row_may_have_everything_that_a_job_has() {
    let business = Business::in_postgres().await;
    let sink = Sink::start().await;
    let table = "create table jobs (id uuid primary key, due_at timestamp, url text, method text, body bytea,
        content_type text, headers jsonb, context json, tags text[], retry jsonb, timeout text, expires text, on_dead text)";
    business.database.execute(table).await;
    let file = business.file(&format!("query = \"select * from jobs where {ALL}\"\n"));
    let stack = feeding(&file, 1).start().await;
    let row = format!(
        "insert into jobs values ('00112233-4455-6677-8899-aabbccddeeff', now() at time zone 'utc' + interval '6 seconds',
            '{}', 'PUT', 'plain', 'text/plain', '{{\"x-a\":\"1\"}}', '{{\"k\":\"v\"}}', '{{customer:42,eu}}',
            '{{\"delays\":[\"1s\"]}}', '5s', '1h', '{}')",
        sink.url("/hook"),
        sink.url("/dead"),
    );
    business.database.execute(&row).await;
    let id = "00112233-4455-6677-8899-aabbccddeeff";
    let job = stack.wait_state(TOPIC, id, "delayed", SOON).await;
    assert_eq!(job["tags"], json!(["customer:42", "eu"]), "{job}");
    let arrived = sink.wait_for_job(id, 1, SOON).await.remove(0);
    assert_eq!((arrived.method.as_str(), &arrived.body[..]), ("PUT", &b"plain"[..]));
    assert_eq!((arrived.header("x-a"), arrived.header("content-type")), (Some("1"), Some("text/plain")));
}

#[tokio::test]
async fn ids_are_texts_or_integers_and_all_pages_are_read() {
    let postgres = ["bigint", "integer", "smallint", "text", "varchar(20)", "char(8)"];
    for ty in postgres {
        let business = Business::in_postgres().await;
        pages(&business, ty, "timestamptz").await;
    }
}

#[tokio::test]
async fn ids_in_sqlite_are_texts_or_integers_and_all_pages_are_read() {
    for ty in ["integer primary key", "text", "", "int"] {
        let [_, business] = Business::each().await;
        pages(&business, ty, "integer").await;
    }
}

/// Loads 250 rows, more than one page, with ids and times of these types, and asserts that each is delivered.
async fn pages(business: &Business, ty: &str, time: &str) {
    let sink = Sink::start().await;
    business.database.execute(&format!("create table t (id {ty}, due_at {time}, url text)")).await;
    let is_text = !ty.contains("int") && !ty.is_empty();
    let id = |n: usize| if is_text { format!("'x{n:04}'") } else { (n as i64 - 100).to_string() };
    let now = match &business.database {
        Database::Postgres(_) => "now()",
        Database::Sqlite(_) => "unixepoch()",
    };
    let rows: Vec<_> = (0..250).map(|n| format!("({}, {now}, '{}')", id(n), sink.url("/hook"))).collect();
    business.database.execute(&format!("insert into t values {}", rows.join(", "))).await;
    let conditions = match &business.database {
        Database::Postgres(_) => ALL.to_owned(),
        Database::Sqlite(_) => ALL.replace(":from", "unixepoch(:from)").replace(":to", "unixepoch(:to)"),
    };
    let file = business.file(&format!("query = \"select id, due_at, url from t where {conditions}\"\n"));
    let stack = feeding(&file, 1).start().await;
    wait_rows(&stack, "submitted", 250).await;
    sink.wait_for(250, SOON).await;
    assert_eq!(sink.counts().len(), 250, "{ty}");
}

#[tokio::test]
async fn a_url_of_a_database_may_be_in_the_environment() {
    let server = PostgresServer::start().await;
    let business = Business::in_postgres().await;
    let sink = Sink::start().await;
    let other = Database::Postgres(Box::new(server));
    other
        .execute(&format!(
            "create table t (id text, due_at timestamptz, url text); insert into t values ('there', now(), '{}')",
            sink.url("/hook")
        ))
        .await;
    let file = business.file("");
    let text = std::fs::read_to_string(&file).expect("a file");
    let text = text.replace(&business.database.url(), "env:ORDERS_URL");
    std::fs::write(&file, format!("{text}query = \"select id, due_at, url from t where {ALL}\"\n"))
        .expect("a file");
    let _stack = feeding(&file, 1).role_env(Role::Feed, "ORDERS_URL", &other.url()).start().await;
    sink.wait_for_job("there", 1, SOON).await;
}

#[tokio::test]
async fn large_rows_are_read_in_pages_that_fit() {
    for business in Business::each().await {
        let sink = Sink::start().await;
        let text = "x".repeat(200 * 1024);
        let rows: Vec<_> = (0..60)
            .map(|n| {
                format!(
                    "('o-{n:02}', '{}', '{}', '{{\"text\":\"{text}\"}}')",
                    ago(Duration::ZERO),
                    sink.url("/hook")
                )
            })
            .collect();
        business
            .database
            .execute(&format!("insert into orders (id, due_at, url, body) values {}", rows.join(", ")))
            .await;
        let stack = feeding(&business.orders(), 1).start().await;
        wait_rows(&stack, "submitted", 60).await;
        sink.wait_for(60, SOON).await;
        assert!(sink.arrivals().iter().all(|arrival| arrival.body.len() > text.len()));
    }
}

#[tokio::test]
async fn an_id_in_sqlite_that_is_no_text_is_left_out_and_ids_of_two_types_are_a_mistake() {
    let [_, business] = Business::each().await;
    let sink = Sink::start().await;
    business.insert(&sink, &[("a", ago(Duration::ZERO))]).await;
    let bad = "insert into orders (id, due_at, url) select cast(x'ff' as text), due_at, url from orders";
    business.database.execute(bad).await;
    {
        let stack = feeding(&business.orders(), 1).start().await;
        sink.wait_for_job("a", 1, SOON).await;
        wait_rows(&stack, "refused", 2).await;
        assert!(stack.feeds[0].log().contains("UTF-8"), "{}", stack.feeds[0].log());
    }
    let mixed = format!(
        "select 'o-' || rowid as id, due_at, url from orders where {}",
        ALL.replace("id >", "rowid >")
    );
    let file = business.file(&format!("query = \"{}\"\n", mixed.replace("order by id", "order by rowid")));
    let mut stack = feeding(&file, 0).start().await;
    let feed = stack.spec(Role::Feed).start();
    stack.feeds.push(feed);
    stack.feeds[0].wait_log("compares :after with integers", SOON).await;
}
