//! Helpers for archive tests: PostgreSQL and SQLite databases, stacks that archive to them, rows, and waits for them.

use ringback_testkit::{PostgresServer, Role};
use rusqlite::types::ValueRef;
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio_postgres::{NoTls, SimpleQueryMessage};

use crate::prelude::*;

/// A database that archivers write to.
pub(crate) enum Database {
    Postgres(Box<PostgresServer>),
    Sqlite(TempDir),
}

impl Database {
    /// Starts two stacks and waits until their archives can be used: processes over Redis with an archiver to
    /// PostgreSQL, and one process on an embedded store with SQLite. `change` sets further options.
    pub(super) async fn each(change: impl Fn(StackOptions) -> StackOptions) -> [(Self, Stack); 2] {
        let [(postgres, over_redis), (sqlite, embedded)] = Self::options(change).await;
        let stacks = [over_redis.start().await, embedded.start().await];
        for stack in &stacks {
            attached(stack).await;
            readable(stack).await;
        }
        let [over_redis, embedded] = stacks;
        [(postgres, over_redis), (sqlite, embedded)]
    }

    /// The databases and the options of the stacks of [`Self::each`], which are not started yet.
    pub(super) async fn options(change: impl Fn(StackOptions) -> StackOptions) -> [(Self, StackOptions); 2] {
        let postgres = Self::Postgres(Box::new(PostgresServer::start().await));
        let over_redis =
            change(Stack::options().count(Role::Archiver, 1)).env("RINGBACK_ARCHIVE", &postgres.url());
        let sqlite = Self::Sqlite(tempfile::tempdir().expect("a directory"));
        let embedded = change(StackOptions::embedded()).env("RINGBACK_ARCHIVE", &sqlite.url());
        [(postgres, over_redis), (sqlite, embedded)]
    }

    /// PostgreSQL, and a started stack over Redis with `count` archivers that write to it.
    pub(super) async fn with_archivers(count: usize) -> (Self, Stack) {
        let database = Self::Postgres(Box::new(PostgresServer::start().await));
        let options = Stack::options().count(Role::Archiver, count).env("RINGBACK_ARCHIVE", &database.url());
        let stack = options.start().await;
        attached(&stack).await;
        (database, stack)
    }

    /// Runs statements; any rows are dropped.
    pub(crate) async fn execute(&self, sql: &str) {
        match self {
            Self::Postgres(_) => drop(self.rows(sql).await),
            Self::Sqlite(directory) => {
                let file = directory.path().join("archive.db");
                rusqlite::Connection::open(file)
                    .expect("the file opens")
                    .execute_batch(sql)
                    .expect("it runs");
            }
        }
    }

    pub(crate) fn url(&self) -> String {
        match self {
            Self::Postgres(server) => server.url(),
            Self::Sqlite(directory) => format!("sqlite:{}", directory.path().join("archive.db").display()),
        }
    }

    /// The rows of a query, each value as text.
    pub(crate) async fn rows(&self, sql: &str) -> Vec<Vec<String>> {
        match self {
            Self::Postgres(server) => {
                let (client, connection) =
                    tokio_postgres::connect(&server.url(), NoTls).await.expect("PostgreSQL answers");
                let mut running = JoinSet::new();
                running.spawn(connection);
                let messages =
                    client.simple_query(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
                let row = |message: &SimpleQueryMessage| match message {
                    SimpleQueryMessage::Row(row) => {
                        Some((0..row.len()).map(|n| row.get(n).unwrap_or("null").to_owned()).collect())
                    }
                    _ => None,
                };
                messages.iter().filter_map(row).collect()
            }
            Self::Sqlite(directory) => {
                let file = directory.path().join("archive.db");
                let connection = rusqlite::Connection::open(file).expect("the file opens");
                connection.busy_timeout(Duration::from_secs(5)).expect("a timeout");
                let mut statement = connection.prepare(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
                let columns = statement.column_count();
                let rows =
                    statement.query_map([], |row| (0..columns).map(|n| Ok(text(row.get_ref(n)?))).collect());
                rows.expect("it runs").collect::<Result<_, _>>().expect("rows")
            }
        }
    }

    /// The rows of a query as lines, once there are exactly `count`. Panics after `within`.
    pub(super) async fn lines(&self, sql: &str, count: usize, within: Duration) -> Vec<String> {
        eventually(within, &format!("{count} rows of {sql}"), async || {
            let lines: Vec<_> = self.rows(sql).await.iter().map(|row| row.join(" ")).collect();
            if lines.len() == count { Ok(lines) } else { Err(lines.join(", ")) }
        })
        .await
    }
}

/// Waits until the archive is attached. Jobs that end before that are not archived.
pub(crate) async fn attached(stack: &Stack) {
    stack.wait_get("/v1/archive", SOON, |archive| archive["attached"] == true).await;
}

/// Waits until the history can be read: an archiver attaches the archive before it has reached the database.
pub(crate) async fn readable(stack: &Stack) {
    stack.wait_status("/v1/history", 200, SOON).await;
}

/// Waits until no ended job waits for the archive.
pub(super) async fn nothing_waits(stack: &Stack) {
    stack.wait_get("/v1/archive", SOON, |archive| archive["pending"] == 0).await;
}

fn text(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => "null".to_owned(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(text) | ValueRef::Blob(text) => String::from_utf8_lossy(text).into_owned(),
    }
}
