//! A database of the archive that is away or hangs: deliveries go on until the outbox is full; then submits and
//! deliveries are refused, or ends are dropped, as the settings say.

use ringback_testkit::{PostgresServer, Role};

use tokio::time::Instant;

use super::database::{Database, attached};
use crate::prelude::*;

/// A stack that archives to PostgreSQL, with an outbox of 1 MiB in a single shard.
async fn started(when_full: &str) -> (Database, Stack) {
    let database = Database::Postgres(Box::new(PostgresServer::start().await));
    let stack = Stack::options()
        .count(Role::Archiver, 1)
        .env("RINGBACK_SHARDS", "1")
        .env("RINGBACK_ARCHIVE", &database.url())
        .env("RINGBACK_ARCHIVE_OUTBOX_MIB", "1")
        .env("RINGBACK_ARCHIVE_WHEN_FULL", when_full)
        .start()
        .await;
    attached(&stack).await;
    (database, stack)
}

fn large(sink: &Sink, id: &str) -> serde_json::Value {
    with(job(sink, id), "body", noise(1, 200_000))
}

#[tokio::test]
async fn a_full_outbox_refuses_submits_and_then_deliveries_until_the_database_is_back() {
    let (mut database, stack) = started("stall").await;
    let sink = Sink::start().await;
    let Database::Postgres(server) = &mut database else { unreachable!("it is PostgreSQL") };
    server.kill();
    // Jobs that are there when the outbox is full, and are due later.
    stack.post_empty("/v1/topics/later/pause").await.expect(200);
    for n in 0..12 {
        stack.accept(&with(large(&sink, &format!("later-{n}")), "topic", "later")).await;
    }
    for n in 0..6 {
        let id = format!("{n}");
        stack.accept(&large(&sink, &id)).await;
        stack.wait_state(TOPIC, &id, "done", SOON).await;
    }
    let refused = stack.send(http::Method::POST, "/v1/jobs", &job(&sink, "refused")).await;
    let (status, problem) = refused.parts();
    assert_eq!(status, 503, "{problem}");
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("archive")), "{problem}");
    assert_eq!(stack.job(TOPIC, "refused").await.0, 404, "nothing was done");
    let archive = stack.stats().await["archive"].clone();
    assert_eq!((&archive["pending"], &archive["full_shards"]), (&json!(6), &json!(1)), "{archive}");

    // Existing jobs are delivered until the outbox has twice the bound.
    stack.post_empty("/v1/topics/later/resume").await.expect(200);
    stack.wait_get("/v1/archive", SOON, |archive| archive["pending_bytes"].as_u64() >= Some(2 << 20)).await;
    let Database::Postgres(server) = &mut database else { unreachable!("it is PostgreSQL") };
    server.restart().await;
    sink.wait_for(18, SOON).await;
    let ends = database.lines("select id from ringback_ended_jobs", 18, SOON).await;
    assert_eq!(ends.iter().collect::<std::collections::BTreeSet<_>>().len(), 18, "each once: {ends:?}");
    eventually(SOON, "submits are taken", async || match stack.submit(&job(&sink, "after")).await {
        (201, _) => Ok(()),
        (_, problem) => Err(problem),
    })
    .await;
}

#[tokio::test]
async fn an_outbox_that_drops_goes_on_and_says_how_many_ends_are_lost() {
    let (mut database, stack) = started("drop").await;
    let sink = Sink::start().await;
    let Database::Postgres(server) = &mut database else { unreachable!("it is PostgreSQL") };
    server.kill();
    for n in 0..12 {
        let id = format!("{n}");
        stack.accept(&large(&sink, &id)).await;
        stack.wait_state(TOPIC, &id, "done", SOON).await;
    }
    let archive = stack.get("/v1/archive").await.expect(200);
    let (pending, dropped) =
        (archive["pending"].as_u64().unwrap_or(0), archive["dropped"].as_u64().unwrap_or(0));
    assert!(pending + dropped == 12 && dropped >= 6, "{archive}");
    let Database::Postgres(server) = &mut database else { unreachable!("it is PostgreSQL") };
    server.restart().await;
    let kept = usize::try_from(pending).expect("few");
    let ends = database.lines("select id from ringback_ended_jobs order by length(id), id", kept, SOON).await;
    let latest: Vec<_> = (dropped..12).map(|n| n.to_string()).collect();
    assert_eq!(ends, latest, "the oldest are dropped");
}

#[tokio::test]
async fn deliveries_do_not_wait_for_a_database_that_hangs() {
    let (mut database, stack) = started("stall").await;
    let sink = Sink::start().await;
    let Database::Postgres(server) = &mut database else { unreachable!("it is PostgreSQL") };
    server.pause(true);
    for n in 0..50 {
        stack.accept(&job(&sink, &format!("{n}"))).await;
    }
    sink.wait_for(50, SOON).await;
    let Database::Postgres(server) = &mut database else { unreachable!("it is PostgreSQL") };
    server.pause(false);
    database.lines("select id from ringback_ended_jobs", 50, 2 * SOON + Duration::from_secs(20)).await;
}

#[tokio::test]
async fn an_archive_that_is_given_up_is_detached_and_what_waits_is_dropped_on_request() {
    let (mut database, mut stack) = started("stall").await;
    let sink = Sink::start().await;
    let Database::Postgres(server) = &mut database else { unreachable!("it is PostgreSQL") };
    server.kill();
    stack.accept(&job(&sink, "a")).await;
    stack.wait_state(TOPIC, "a", "done", SOON).await;
    stack.archivers[0].kill();
    let (status, problem) = stack.delete("/v1/archive").await.parts();
    assert_eq!(status, 409, "{problem}");
    assert_eq!(stack.delete("/v1/archive?drop=true").await.expect(200), json!({"dropped": 1}));
    let archive = stack.get("/v1/archive").await.expect(200);
    assert_eq!(
        (&archive["attached"], &archive["pending"], &archive["dropped"]),
        (&json!(false), &json!(0), &json!(1))
    );
    stack.accept(&job(&sink, "b")).await;
    stack.wait_state(TOPIC, "b", "done", SOON).await;
    assert_eq!(stack.get("/v1/archive").await.expect(200)["pending"], 0, "no end is kept any more");
}

#[tokio::test]
async fn a_database_that_takes_nothing_is_tried_ever_more_seldom_and_gets_all_once_it_does() {
    let (database, stack) = started("stall").await;
    let sink = Sink::start().await;
    let refuse = "create function refuse() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$; \
        create trigger refuse before insert on ringback_ended_jobs for each row execute function refuse()";
    database.rows(refuse).await;
    for n in 0..30 {
        stack.accept(&job(&sink, &format!("{n}"))).await;
    }
    sink.wait_for(30, SOON).await;
    let fails_three_times_more = async || {
        let failures = async || stack.archivers[0].metric("ringback_archiver_failures_total").await;
        let before = failures().await.unwrap_or(0.0);
        eventually(SOON, "it has failed three times more", async || {
            if failures().await >= Some(before + 3.0) { Ok(()) } else { Err("not yet") }
        })
        .await;
    };
    fails_three_times_more().await;
    let begun = Instant::now();
    fails_three_times_more().await;
    // Pauses grow up to some seconds. Without that, these failures would take about 200 ms.
    assert!(begun.elapsed() > Duration::from_millis(600), "{:?}", begun.elapsed());
    let log = stack.archivers[0].log();
    assert_eq!(log.matches("ended jobs wait in the store").count(), 1, "{log}");
    database.rows("drop trigger refuse on ringback_ended_jobs").await;
    database.lines("select id from ringback_ended_jobs", 30, SOON).await;
}

#[tokio::test]
async fn a_file_of_sqlite_that_is_removed_is_noticed_and_taken_back() {
    let database = Database::Sqlite(tempfile::tempdir().expect("a directory"));
    let Database::Sqlite(directory) = &database else { unreachable!("it is SQLite") };
    let stack =
        Stack::options().count(Role::Archiver, 1).env("RINGBACK_ARCHIVE", &database.url()).start().await;
    attached(&stack).await;
    let sink = Sink::start().await;
    stack.accept(&job(&sink, "before")).await;
    database.lines("select id from ringback_ended_jobs", 1, SOON).await;
    // The files are moved away; no job ends meanwhile.
    let away = tempfile::tempdir().expect("a directory");
    for file in std::fs::read_dir(directory.path()).expect("read") {
        let file = file.expect("a file");
        std::fs::copy(file.path(), away.path().join(file.file_name())).expect("copied");
        std::fs::remove_file(file.path()).expect("removed");
    }
    stack.archivers[0].wait_readiness(503, "was removed, moved or replaced", SOON).await;
    stack.accept(&job(&sink, "meanwhile")).await;
    sink.wait_for_job("meanwhile", 1, SOON).await;
    assert!(!directory.path().join("archive.db").exists(), "no empty archive takes its place");
    for file in std::fs::read_dir(away.path()).expect("read") {
        let file = file.expect("a file");
        std::fs::copy(file.path(), directory.path().join(file.file_name())).expect("copied");
    }
    stack.archivers[0].wait_readiness(200, "", SOON).await;
    database.lines("select id from ringback_ended_jobs", 2, SOON).await;
}
