//! Backups of an installation under load: what is pending all the time is in each of them, and nothing is twice.

use super::files::{Backup, backup, restored};
use crate::prelude::*;

/// The jobs that are pending all the time.
const STEADY: usize = 2_000;
/// The backups that are made one after the other.
const BACKUPS: usize = 4;

fn far(id: &str) -> Value {
    json!({"topic": "steady", "id": id, "delay": "10h", "url": "http://127.0.0.1:9/", "body": {"n": 1}})
}

#[tokio::test]
async fn what_is_pending_all_the_time_is_in_a_backup_once_whatever_moves() {
    for options in StackOptions::each_store() {
        let (stack, sink) = (options.start().await, Sink::counting().await);
        for first in (0..STEADY).step_by(100) {
            let steady: Vec<_> = (first..first + 100).map(|n| far(&format!("steady-{n}"))).collect();
            eventually(SOON, "all are accepted", async || match stack.batch(&steady).await.1 {
                answer if answer["accepted"] == steady.len() => Ok(()),
                answer => Err(answer),
            })
            .await;
        }
        let dir = tempfile::tempdir().expect("a directory");
        let mut saved = Vec::new();
        let backups = async {
            for n in 0..BACKUPS {
                saved.push(backup(&stack, dir.path(), &format!("backup-{n}")).await);
            }
        };
        tokio::select! {
            () = backups => {}
            () = submits_and_deliveries(&stack, &sink) => unreachable!("it never ends"),
            () = cancels(&stack) => unreachable!("it never ends"),
            () = replacements(&stack) => unreachable!("it never ends"),
        }
        assert!(sink.seen() > 0, "jobs were delivered meanwhile");
        for (saved, _) in &saved {
            check(saved);
        }
        let other = super::api_only(None, 3).start().await;
        let (saved, path) = saved.pop().expect("a backup");
        assert_eq!(restored(&other, &path).await["jobs"]["created"], saved.counts().1);
    }
}

/// Asserts that each steady job is in a backup. [`Backup::jobs`] asserts that no job is there twice.
fn check(saved: &Backup) {
    let jobs = saved.jobs();
    let steady =
        jobs.values().filter(|job| job["topic"] == "steady" && job["id"].as_str().is_some_and(is_steady));
    assert_eq!(steady.count(), STEADY);
}

fn is_steady(id: &str) -> bool {
    id.starts_with("steady-")
}

/// Submits a batch of jobs; a busy machine may answer 503.
async fn submit(stack: &Stack, jobs: &[Value]) {
    let (status, answer) = stack.batch(jobs).await;
    assert!(matches!(status, 200 | 503), "{status} {answer}");
}

/// Submits jobs that are due at once, batch by batch, for ever.
async fn submits_and_deliveries(stack: &Stack, sink: &Sink) {
    for batch in 0_u64.. {
        let due = |n| json!({"topic": format!("due-{}", n % 7), "id": format!("due-{batch}-{n}"), "url": sink.url("/")});
        let jobs: Vec<_> = (0..200).map(due).collect();
        submit(stack, &jobs).await;
    }
}

/// Submits jobs and cancels them, batch by batch, for ever.
async fn cancels(stack: &Stack) {
    for batch in 0_u64.. {
        let jobs: Vec<_> = (0..50).map(|n| far(&format!("cancelled-{batch}-{n}"))).collect();
        submit(stack, &jobs).await;
        for n in 0..50 {
            stack.cancel("steady", &format!("cancelled-{batch}-{n}")).await;
        }
    }
}

/// Replaces the steady jobs, which stay pending, for ever, with bodies that a store keeps beside the records.
async fn replacements(stack: &Stack) {
    for round in 0_u64.. {
        let jobs: Vec<_> = (0..200)
            .map(|n| {
                let mut job = far(&format!("steady-{}", (round * 200 + n) % STEADY as u64));
                (job["body"], job["if_exists"]) =
                    (format!("{round} {}", "x".repeat(3_000)).into(), "replace".into());
                job
            })
            .collect();
        submit(stack, &jobs).await;
    }
}
