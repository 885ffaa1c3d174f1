//! How archivers start and share work: wrong settings, another schema version, TLS, several archivers, partitions.

use std::path::Path;

use ringback_testkit::{PostgresServer, ProcessSpec, Role, Sink, Stack, eventually};

use super::database::{Database, attached, readable};
use crate::sample_jobs::{SOON, TOPIC, job};

#[tokio::test]
async fn wrong_settings_end_an_archiver_with_64_and_without_a_secret_in_its_words() {
    let spec = ProcessSpec::new("ringback-archiver")
        .env("RINGBACK_ARCHIVE", "mysql://root:s3cret@db/x")
        .env("RINGBACK_ARCHIVE_KEEP", "1h");
    let output = tokio::task::spawn_blocking(move || spec.command().output()).await.expect("it runs");
    let output = output.expect("it starts");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(64), "{text}");
    for word in ["RINGBACK_ARCHIVE ", "postgres://", "RINGBACK_ARCHIVE_KEEP", "at least 1d"] {
        assert!(text.contains(word), "no {word:?} in {text}");
    }
    assert!(!text.contains("s3cret"), "{text}");
}

#[tokio::test]
async fn a_schema_of_another_version_is_left_alone_and_ends_wait() {
    let database = Database::Postgres(Box::new(PostgresServer::start().await));
    database
        .rows("create table ringback_schema (version integer primary key); insert into ringback_schema values (99)")
        .await;
    let stack = Stack::options().env("RINGBACK_ARCHIVE", &database.url()).start().await;
    let archiver = stack.spec(Role::Archiver).start();
    attached(&stack).await;
    let log = "it has version 99 of the schema, and this build knows version 1";
    archiver.wait_log(log, SOON).await;
    let sink = Sink::start().await;
    stack.accept(&job(&sink, "a")).await;
    stack.wait_state(TOPIC, "a", "done", SOON).await;
    assert_eq!(stack.get("/v1/archive").await.expect(200)["pending"], 1);
}

#[tokio::test]
async fn tls_to_postgres_is_checked_by_the_authorities_of_the_file() {
    let file = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("tls").join(name);
    let mut server = PostgresServer::start().await;
    server.require_tls(&file("api.pem"), &file("api.key"));
    server.restart().await;
    let plain = server.url();
    for mode in ["require", "prefer"] {
        let url = plain.replace("disable", mode);
        let authority = |name: &str| file(name).display().to_string();
        let options = Stack::options().env("RINGBACK_ARCHIVE", &url);
        let stack = options.clone().env("RINGBACK_CA_FILE", &authority("authority.pem")).start().await;
        let stranger = stack.spec(Role::Archiver).env("RINGBACK_CA_FILE", &authority("other.pem")).start();
        eventually(SOON, "a certificate of another authority is refused", async || {
            let log = stranger.log();
            let says = log.contains("the archive is unavailable") && log.contains("certificate");
            if says { Ok(()) } else { Err(log) }
        })
        .await;
        drop(stranger);
        let _archiver = stack.spec(Role::Archiver).start();
        attached(&stack).await;
        readable(&stack).await;
        let sink = Sink::start().await;
        stack.accept(&job(&sink, mode)).await;
        let path = format!("/v1/history/{TOPIC}/{mode}");
        stack.wait_get(&path, SOON, |page| page["items"][0]["state"] == "done").await;
    }
    // The server accepts no connection without TLS, so the earlier ones were encrypted.
    let without = Stack::options().env("RINGBACK_ARCHIVE", &plain).start().await;
    let archiver = without.spec(Role::Archiver).start();
    archiver.wait_log("no pg_hba.conf entry", SOON).await;
}

#[tokio::test]
async fn several_archivers_make_the_schema_at_once_and_share_the_work() {
    let (database, stack) = Database::with_archivers(3).await;
    let sink = Sink::start().await;
    for n in 0..100 {
        stack.accept(&job(&sink, &format!("{n}"))).await;
    }
    sink.wait_for(100, SOON).await;
    database.lines("select id from ringback_ended_jobs", 100, SOON).await;
    assert_eq!(database.rows("select version from ringback_schema").await, [["1"]]);
    // The month of now and the two after it, for both tables.
    let partitions = "select count(*) from pg_inherits where inhparent in ('ringback_ended_jobs'::regclass, 'ringback_bodies'::regclass)";
    assert_eq!(database.rows(partitions).await, [["8"]]);
}

#[tokio::test]
async fn what_was_kept_long_enough_is_removed_by_months() {
    let database = Database::Postgres(Box::new(PostgresServer::start().await));
    let options = Stack::options()
        .count(Role::Archiver, 1)
        .env("RINGBACK_ARCHIVE", &database.url())
        .env("RINGBACK_ARCHIVE_KEEP", "30d");
    let mut stack = options.start().await;
    attached(&stack).await;
    for month in ["2025_01", "2025_02"] {
        let (from, to) =
            if month == "2025_01" { ("2025-01-01", "2025-02-01") } else { ("2025-02-01", "2025-03-01") };
        for table in ["ringback_ended_jobs", "ringback_bodies"] {
            database
                .rows(&format!(
                    "create table {table}_{month} partition of {table} for values from ('{from}') to ('{to}')"
                ))
                .await;
        }
    }
    let old = "insert into ringback_ended_jobs (tenant, topic, id, generation, attempts, state, finished_at, created_at, first_due_at, due_at, \
        failures, attempt_log, attempts_complete) select '', 't', 'old-' || n, 1, 1, 'done', at, at, at, at, 0, '[]', true \
        from (values (1, timestamptz '2025-01-31 23:59:59Z'), (2, timestamptz '2024-05-05Z'), (3, now() - interval '1 day')) as v (n, at)";
    database.rows(old).await;
    let sink = Sink::start().await;
    stack.archivers[0].kill();
    stack.archivers[0].restart();
    stack.archivers[0].ready(SOON).await;
    stack.accept(&job(&sink, "new")).await;
    let left = "select id from ringback_ended_jobs where not exists (select from ringback_ended_jobs where id in ('old-1', 'old-2')) \
        order by id";
    assert_eq!(database.lines(left, 2, SOON).await, ["new", "old-3"]);
    let no_partition = "select 'none' where not exists (select from pg_class where relname like 'ringback_%_2025_%' \
        and relkind = 'r')";
    assert_eq!(database.lines(no_partition, 1, SOON).await, ["none"]);
}
