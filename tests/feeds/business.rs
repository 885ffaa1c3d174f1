//! Helpers for feed tests: a business database with a table of orders, files of feeds that read it, and counts of rows.

use std::fs;

use ringback_core::clock::{Clock as _, SystemClock, Timestamp};
use ringback_core::store_types::{FeedPosition, Options};
use ringback_store::{Store, settings};
use ringback_testkit::{PostgresServer, Process, Role};
use tempfile::TempDir;

use crate::archive::database::Database;
use crate::prelude::*;

/// The topic of the jobs of orders.
pub(super) const TOPIC: &str = "order.unpaid";

/// The orders whose time comes, and that nobody has paid.
pub(super) const UNPAID: &str = "select id, due_at, url, body from orders where paid_at is null and due_at >= :from \
    and due_at < :to and id > :after order by id limit :limit";
/// The orders that were paid.
pub(super) const PAID: &str =
    "select id from orders where paid_at >= :from and id > :after order by id limit :limit";

/// A database with orders.
pub(super) struct Business {
    pub(super) database: Database,
    dir: TempDir,
}

impl Business {
    /// A PostgreSQL and an SQLite database, each with an empty table of orders.
    pub(super) async fn each() -> [Self; 2] {
        let postgres = Database::Postgres(Box::new(PostgresServer::start().await));
        let sqlite = Database::Sqlite(tempfile::tempdir().expect("a directory"));
        [Self::new(postgres).await, Self::new(sqlite).await]
    }

    pub(super) async fn in_postgres() -> Self {
        Self::new(Database::Postgres(Box::new(PostgresServer::start().await))).await
    }

    async fn new(database: Database) -> Self {
        let (time, body) = match &database {
            Database::Postgres(_) => ("timestamptz", "jsonb"),
            Database::Sqlite(_) => ("text", "text"),
        };
        if let Database::Sqlite(_) = database {
            drop(database.rows("pragma journal_mode = wal").await);
        }
        let table = format!(
            "create table orders (id text primary key, due_at {time}, url text, body {body}, paid_at {time})"
        );
        database.execute(&table).await;
        Self { database, dir: tempfile::tempdir().expect("a directory") }
    }

    /// Adds orders, each with a due time and a body that has a number.
    pub(super) async fn insert(&self, sink: &Sink, orders: &[(&str, Timestamp)]) {
        let url = sink.url("/hook");
        let rows = orders.iter().map(|(id, due)| format!("('{id}', '{due}', '{url}', '{{\"n\":1}}')"));
        let rows: Vec<_> = rows.collect();
        let sql = format!("insert into orders (id, due_at, url, body) values {}", rows.join(", "));
        self.database.execute(&sql).await;
    }

    /// Writes a file with the feed `orders` and these further lines. Returns its path.
    pub(super) fn file(&self, more: &str) -> String {
        let path = self.dir.path().join("feeds.toml");
        let head = format!(
            "[[feed]]\nname = \"orders\"\nsource = \"{}\"\ntopic = \"{TOPIC}\"\nevery = \"1s\"\n",
            self.database.url()
        );
        fs::write(&path, head + more).expect("a file");
        path.display().to_string()
    }

    /// Writes the file of a feed that reads the unpaid orders and cancels the paid ones. Returns its path.
    pub(super) fn orders(&self) -> String {
        self.file(&format!("query = \"{UNPAID}\"\ngone = \"{PAID}\"\n"))
    }
}

/// The options of a stack that remembers ended jobs long enough, with `count` processes that load the feeds of a file.
pub(super) fn feeding(file: &str, count: usize) -> StackOptions {
    Stack::options().env("RINGBACK_KEEP_DONE", "2h").count(Role::Feed, count).role_env(
        Role::Feed,
        "RINGBACK_FEEDS",
        file,
    )
}

/// The time `by` from now.
pub(super) fn within(by: Duration) -> Timestamp {
    SystemClock.now().plus(by)
}

/// The value of the row counter for a result, over all feed processes.
pub(super) async fn rows(stack: &Stack, result: &str) -> u64 {
    let mut sum = 0;
    for process in &stack.feeds {
        sum += loaded(process, result).await;
    }
    sum
}

/// The value of the row counter for a result, of one process.
pub(super) async fn loaded(process: &Process, result: &str) -> u64 {
    let metrics = process.metrics().await;
    let label = format!("result=\"{result}\"");
    let lines = metrics.lines().filter(|line| line.starts_with("ringback_feed_rows_total{"));
    let values = lines.filter(|line| line.contains(&label)).filter_map(|line| line.rsplit(' ').next());
    values.map(|value| value.parse::<u64>().expect("a count")).sum()
}

/// Waits until at least `count` rows had a result.
pub(super) async fn wait_rows(stack: &Stack, result: &str, count: u64) {
    eventually(SOON, &format!("{count} rows are {result}"), async || {
        let found = rows(stack, result).await;
        if found >= count { Ok(()) } else { Err(found) }
    })
    .await;
}

/// Sets the position of the feed `orders` in the store, as a pass that began at `at` would have.
pub(super) async fn set_position(stack: &Stack, at: Timestamp) {
    let keep_done = Duration::from_secs(2 * 3600);
    let options = Options { url: stack.store_url(), keep_done, ..settings::defaults(SOON) };
    let store = Store::open(options).expect("a store");
    store.prepare().await.expect("it answers");
    let name = "orders".parse().expect("a name");
    store.set_feed(&name, FeedPosition { at, passed: None }).await.expect("set");
}
