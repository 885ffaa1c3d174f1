//! Archivers, PostgreSQL and `ringback up` are killed at random while jobs end: each end is in the database once.

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use ringback_testkit::seed;
use tokio::time::Instant;

use super::database::{Database, attached};
use crate::prelude::*;

/// The number of jobs that end: `RINGBACK_TEST_ARCHIVED`, by default 2,000.
fn jobs() -> usize {
    ringback_testkit::variable("RINGBACK_TEST_ARCHIVED").unwrap_or(2_000)
}

/// The random generator of the kills. Prints its seed, which `RINGBACK_TEST_ARCHIVE_SEED` sets.
#[expect(clippy::print_stderr, reason = "the seed that repeats the run")]
fn random() -> StdRng {
    let seed = seed("RINGBACK_TEST_ARCHIVE_SEED");
    eprintln!("RINGBACK_TEST_ARCHIVE_SEED={seed}");
    StdRng::seed_from_u64(seed)
}

/// Submits `count` jobs in batches that end in each way (done, dead by 410, cancelled, expired), and calls `between`
/// after each batch.
async fn submit(stack: &Stack, sink: &Sink, count: usize, mut between: impl AsyncFnMut(usize)) {
    sink.answer_path("/gone", Answer::status(410));
    let mut sent = 0;
    while sent < count {
        let batch: Vec<Value> = (sent..(sent + 50).min(count)).map(|n| one(sink, n)).collect();
        sent += batch.len();
        eventually(SOON, "the batch is accepted", async || match stack.batch(&batch).await {
            (200, answer) if answer["refused"] == 0 => Ok(()),
            (_, answer) => Err(answer),
        })
        .await;
        for job in batch.iter().filter(|job| job["topic"] == "cancelled") {
            let (status, answer) = stack.cancel("cancelled", job["id"].as_str().expect("an id")).await;
            assert_eq!(status, 200, "{answer}");
        }
        between(sent).await;
    }
}

fn one(sink: &Sink, n: usize) -> Value {
    let job = json!({"id": format!("job-{n}"), "body": {"n": n}});
    let more = match n % 4 {
        0 | 1 => json!({"topic": "done", "url": sink.url("/well")}),
        2 => json!({"topic": "dead", "url": sink.url("/gone")}),
        _ => json!({"topic": "cancelled", "url": sink.url("/never"), "delay": "1h"}),
    };
    crate::sample_jobs::with_all(job, &more)
}

/// Waits until the database has each end once, with its body, and asserts that the ledger agrees.
async fn check(database: &Database, stack: &Stack, count: usize) {
    let sql =
        "select state, count(*), count(distinct id) from ringback_ended_jobs group by state order by state";
    let quarter = count / 4;
    let expected = [("cancelled", quarter), ("dead", quarter), ("done", count - 2 * quarter)];
    let expected: Vec<_> = expected.map(|(state, n)| format!("{state} {n} {n}")).into();
    let found = eventually(4 * SOON, "each end is in the database", async || {
        let rows: Vec<_> = database.rows(sql).await.iter().map(|row| row.join(" ")).collect();
        if rows == expected { Ok(()) } else { Err(rows.join(", ")) }
    });
    found.await;
    let states = stack.stats().await["states"].clone();
    let ledger = |name: &str| states[name].as_u64().unwrap_or(0);
    assert_eq!(
        (ledger("done"), ledger("dead"), ledger("cancelled")),
        ((count - 2 * quarter) as u64, quarter as u64, quarter as u64)
    );
    let bodies = database.rows("select count(*) from ringback_bodies").await;
    assert_eq!(bodies, [[count.to_string()]], "each with its body");
}

#[tokio::test]
async fn each_end_is_in_postgres_once_while_archivers_and_the_server_are_killed() {
    let (count, mut random) = (jobs(), random());
    let (mut database, mut stack) = Database::with_archivers(2).await;
    let sink = Sink::counting().await;
    let (mut archivers, mut last, mut kills) =
        (std::mem::take(&mut stack.archivers), Instant::now(), BTreeMap::new());
    let Database::Postgres(server) = &mut database else { unreachable!("it is PostgreSQL") };
    submit(&stack, &sink, count, async |_| {
        // A long run has as many kills in a longer time.
        if last.elapsed() < Duration::from_millis(if count > 10_000 { 1_000 } else { 100 }) {
            return;
        }
        last = Instant::now();
        if random.random_ratio(1, 4) {
            server.restart().await;
            *kills.entry("server").or_insert(0) += 1;
        } else {
            let archiver = &mut archivers[random.random_range(0..2)];
            archiver.kill();
            archiver.restart();
            *kills.entry("archiver").or_insert(0) += 1;
        }
    })
    .await;
    eprintln!("{count} jobs, killed: {kills:?}");
    stack.archivers = archivers;
    check(&database, &stack, count).await;
    assert!(kills.values().sum::<u32>() > 0, "something was killed");
}

#[tokio::test]
async fn each_end_is_in_sqlite_once_while_ringback_up_and_its_child_are_killed() {
    let (count, mut random) = (jobs() / 2, random());
    let database = Database::Sqlite(tempfile::tempdir().expect("a directory"));
    let mut stack = StackOptions::embedded().env("RINGBACK_ARCHIVE", &database.url()).start().await;
    attached(&stack).await;
    let (sink, mut done) = (Sink::counting().await, 0);
    // Both are killed between parts of the jobs.
    while done < count {
        let part = 200.min(count - done);
        for n in done..done + part {
            let job = one(&sink, n);
            sink.answer_path("/gone", Answer::status(410));
            let (status, answer) = stack.submit(&job).await;
            assert!(status == 201, "{answer}");
            if job["topic"] == "cancelled" {
                stack.cancel("cancelled", job["id"].as_str().expect("an id")).await;
            }
        }
        done += part;
        if random.random_ratio(1, 2) {
            for pid in children(stack.ups[0].pid()) {
                nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL)
                    .ok();
            }
        } else {
            stack.ups[0].kill();
            stack.ups[0].restart();
            stack.ups[0].ready(SOON).await;
        }
    }
    stack.wait_count("dead", (count / 4) as u64, 3 * SOON).await;
    check(&database, &stack, count).await;
}

/// The process ids of the children of a process.
fn children(pid: u32) -> Vec<i32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}
