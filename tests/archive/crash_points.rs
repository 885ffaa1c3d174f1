//! An archiver is killed at each of its crash points, and its connection to the store is cut at each call: each ended
//! job and each entry of the audit log is in PostgreSQL once.

use std::fs;

use ringback_testkit::{Role, Sink, eventually};

use super::database::{Database, nothing_waits};
use crate::sample_jobs::{SOON, TOPIC, job};

/// The crash points between the steps of an archiver.
const STEPS: [&str; 4] =
    ["archiver.after_take", "archiver.after_write", "archiver.after_remove", "archiver.after_audit_log"];
const CALLS: [&str; 4] = ["attach_archive", "take_ended", "remove_ended", "read_audit_log"];

/// The actions at crash points: each is a line of a fault plan without the number of the pass.
fn actions() -> Vec<String> {
    let calls = CALLS.iter().flat_map(|call| ["before", "after"].map(|side| format!("store.{call}.{side}")));
    let steps = STEPS.iter().map(|step| format!("{step} kill"));
    steps.chain(calls.flat_map(|point| ["kill", "cut"].map(|action| format!("{point} {action}")))).collect()
}

#[tokio::test]
async fn each_end_is_in_the_database_once_wherever_an_archiver_is_killed() {
    let (database, mut stack) = Database::with_archivers(1).await;
    stack.archivers.remove(0).kill();
    let (directory, sink) = (tempfile::tempdir().expect("a directory"), Sink::start().await);
    let file = |name: &str| directory.path().join(name).display().to_string();
    let plan: String = actions().iter().map(|action| format!("{action} 1\n")).collect();
    fs::write(file("plan"), plan).expect("a plan");
    let spec = stack.spec(Role::Archiver).env("FAULT_PLAN", &file("plan")).env("FAULT_LOG", &file("log"));
    let (mut archiver, mut submitted) = (spec.start(), 0);
    eventually(4 * SOON, "everything is done", async || {
        if archiver.exit_status().is_some() {
            archiver.restart();
        }
        stack.post_empty("/v1/topics/other/pause").await.expect(200);
        for _ in 0..5 {
            stack.accept(&job(&sink, &format!("{submitted}"))).await;
            submitted += 1;
        }
        let log = fs::read_to_string(file("log")).unwrap_or_default();
        let left: Vec<_> =
            actions().into_iter().filter(|action| !log.lines().any(|line| line == action)).collect();
        if left.is_empty() { Ok(()) } else { Err(left.join(", ")) }
    })
    .await;
    stack.archivers.push(archiver);
    if stack.archivers[0].exit_status().is_some() {
        stack.archivers[0].restart();
    }
    stack.archivers[0].ready(SOON).await;
    stack.accept(&job(&sink, "last")).await;
    stack.wait_state(TOPIC, "last", "done", SOON).await;
    stack.wait_count("done", submitted + 1, SOON).await;
    let archived = database.lines("select id from ringback_ended_jobs where id = 'last'", 1, SOON).await;
    assert_eq!(archived, ["last"]);
    nothing_waits(&stack).await;
    let counts = database.rows("select count(*), count(distinct id) from ringback_ended_jobs").await;
    assert_eq!(counts, [[(submitted + 1).to_string(), (submitted + 1).to_string()]]);
    let shown =
        stack.get("/v1/audit-log?limit=1000").await.expect(200)["items"].as_array().map_or(0, Vec::len);
    database.lines("select distinct id from ringback_audit_log", shown, SOON).await;
}
