//! `RINGBACK_DURABILITY` of all processes: a weaker Redis is refused at their start, and waited for later.

use ringback_testkit::{Persistence, Process, RedisServer, Role};

use super::redis_outage::{accepted_again, still_the_same_processes};
use crate::prelude::*;

/// How long it may take until everything works again.
const RECOVERY: Duration = Duration::from_secs(60);
const NAME: &str = "RINGBACK_DURABILITY";

/// Waits until `/readyz` of a process answers 503 with a text that contains `word`.
pub(super) async fn unready(process: &Process, word: &str) {
    process.wait_readiness(503, word, RECOVERY).await;
}

#[tokio::test]
async fn every_process_ends_at_its_start_if_the_store_is_weaker_than_asked() {
    let options = RedisServer::options().persistence(Persistence::EverySec);
    let stack = Stack::options().redis(options).start().await;
    for (asked, words) in [("disk", "appendfsync is everysec"), ("replicated", "has no replica")] {
        for role in [Role::Api, Role::Carrier, Role::Notifier, Role::Up] {
            let mut process = stack.spec(role).env(NAME, asked).start();
            assert_eq!(process.wait_exit(SOON).await.code(), Some(1), "{role:?}");
            let log = process.log();
            assert!(log.contains(&format!("{NAME} is {asked}")) && log.contains(words), "{log}");
        }
    }
    let embedded = stack.spec(Role::Up).env("RINGBACK_STORE", "embedded:./data").env(NAME, "replicated");
    let mut process = embedded.start();
    assert_eq!(process.wait_exit(SOON).await.code(), Some(64));
    assert!(process.log().contains("an embedded store has no replicas"), "{}", process.log());
}

#[tokio::test]
async fn a_store_that_becomes_weaker_takes_no_more_jobs_until_it_is_as_asked() {
    let options = RedisServer::options().persistence(Persistence::Always);
    let mut stack = Stack::options().redis(options).env(NAME, "disk").start().await;
    let sink = Sink::start().await;
    stack.accept(&with(job(&sink, "before"), "delay", "3s")).await;
    set_fsync(&stack, "everysec").await;
    for process in stack.processes() {
        unready(process, "appendfsync is everysec: set it to always").await;
    }
    let (status, problem) = stack.submit(&job(&sink, "refused")).await;
    assert_eq!(status, 503, "{problem}");
    assert!(problem["detail"].as_str().is_some_and(|d| d.contains("was not accepted")), "{problem}");
    assert!(problem.get("id").is_none(), "{problem}");
    sink.wait_for_job("before", 1, SOON).await;

    set_fsync(&stack, "always").await;
    accepted_again(&stack, &job(&sink, "after")).await;
    sink.wait_for_job("after", 1, SOON).await;
    stack.ready(RECOVERY).await;
    still_the_same_processes(&mut stack);
}

async fn set_fsync(stack: &Stack, value: &str) {
    let mut config = redis::cmd("CONFIG");
    config.arg("SET").arg("appendfsync").arg(value);
    config.exec_async(&mut stack.redis().client().await).await.expect("CONFIG SET");
}
