//! Consumers that wait for pull jobs: a submit wakes one, also when some hang up, the API ends or the store is away.

use ringback_testkit::{CallWatch, now};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::pull_jobs::{jobs, pull, waiting};
use crate::prelude::*;
use crate::sample_jobs::{between, time};

#[tokio::test]
async fn a_submit_wakes_one_of_those_who_wait_and_each_gets_a_job_of_its_own() {
    const WAITERS: usize = 30;
    for options in StackOptions::each_store() {
        let stack = options.start().await;
        let mut waiters = JoinSet::new();
        for _ in 0..WAITERS {
            waiters.spawn(waiting(&stack, &json!({"wait": "25s", "max": 10})));
        }
        // After this time the consumers wait: the listener checks within three seconds.
        assert!(timeout(Duration::from_millis(1500), waiters.join_next()).await.is_err());
        let submitted = Instant::now();
        stack.accept(&pull("first")).await;
        let reply = waiters.join_next().await.expect("a waiter").expect("an answer");
        assert!(submitted.elapsed() < Duration::from_secs(2), "{:?}", submitted.elapsed());
        assert_eq!(jobs(&reply)[0]["id"], "first");
        for n in 1..WAITERS {
            stack.accept(&pull(&n.to_string())).await;
            let reply = timeout(SOON, waiters.join_next()).await.expect("in time").expect("a waiter");
            assert_eq!(jobs(&reply.expect("an answer")).len(), 1);
        }
        stack.wait_count("reserved", WAITERS as u64, SOON).await;
    }
}

#[tokio::test]
async fn a_job_that_becomes_due_reaches_one_who_waits_when_it_is_due() {
    for options in StackOptions::each_store() {
        let stack = options.start().await;
        stack.accept(&with(pull("later"), "delay", "700ms")).await;
        let (_, accepted) = stack.job(TOPIC, "later").await;
        let job = stack.reserve_one(TOPIC, &json!({"wait": "20s"})).await;
        let (due, at) = (time(&accepted["due_at"]), now());
        assert_eq!(job["id"], "later");
        assert!(at >= due && between(due, at) < Duration::from_secs(2), "due at {due}, given at {at}");
    }
}

#[tokio::test]
async fn one_who_hangs_up_takes_no_job_and_passes_its_turn_on() {
    for options in StackOptions::each_store() {
        let stack = options.start().await;
        for round in 0..5 {
            let gone = timeout(Duration::from_millis(300), waiting(&stack, &json!({"wait": "25s"})));
            assert!(gone.await.is_err(), "there is nothing yet");
            stack.accept(&pull(&format!("job-{round}"))).await;
            let job = stack.reserve_one(TOPIC, &json!({"wait": "10s"})).await;
            assert_eq!(job["id"], format!("job-{round}"));
            assert_eq!(stack.settle(&job, "finish", &json!({})).await.status, 200);
        }
        // Many who hang up in the very moment in which jobs come.
        for round in 0..20 {
            let (waiter, sent) = (waiting(&stack, &json!({"wait": "25s"})), pull(&format!("race-{round}")));
            let (gone, _) =
                tokio::join!(timeout(Duration::from_millis(10 + round), waiter), stack.accept(&sent));
            gone.iter().for_each(|reply| assert_eq!(jobs(reply).len(), 1));
        }
        let stats = stack.stats().await;
        let there = ["reserved", "ready"].map(|state| stats["states"][state].as_u64().unwrap_or_default());
        assert_eq!(there.iter().sum::<u64>(), 20, "each is in one place");
    }
}

#[tokio::test]
async fn waiting_reserves_are_answered_empty_when_the_api_stops() {
    let mut stack = Stack::start().await;
    let mut waiters = JoinSet::new();
    for _ in 0..10 {
        waiters.spawn(waiting(&stack, &json!({"wait": "25s"})));
    }
    assert!(timeout(Duration::from_millis(500), waiters.join_next()).await.is_err());
    let stopped = Instant::now();
    stack.apis[0].term();
    while let Some(reply) = waiters.join_next().await {
        assert!(jobs(&reply.expect("an answer")).is_empty());
    }
    assert_eq!(stack.apis[0].wait_exit(SOON).await.code(), Some(0));
    assert!(stopped.elapsed() < Duration::from_secs(5), "{:?}", stopped.elapsed());
}

#[tokio::test]
async fn one_of_many_who_come_at_once_asks_the_store() {
    const WAITERS: usize = 200;
    let stack = Stack::start().await;
    let mut waiters = JoinSet::new();
    waiters.spawn(waiting(&stack, &json!({"wait": "25s"})));
    // After this time the consumer has checked the store.
    assert!(timeout(Duration::from_millis(500), waiters.join_next()).await.is_err());
    let watch = stack.redis().watch_calls().await;
    for _ in 1..WAITERS {
        waiters.spawn(waiting(&stack, &json!({"wait": "25s"})));
    }
    assert!(timeout(Duration::from_millis(1500), waiters.join_next()).await.is_err());
    let pulls = |watch: &CallWatch| -> u64 {
        let is_pull = |name: &str| name.ends_with("_pull");
        watch.by_function().iter().filter(|(name, _)| is_pull(name)).map(|(_, calls)| calls).sum()
    };
    assert_eq!(pulls(&watch), 0, "{:?}", watch.by_function());
    // A submit still wakes each of them.
    for n in 0..WAITERS {
        stack.accept(&pull(&n.to_string())).await;
        let reply = timeout(SOON, waiters.join_next()).await.expect("in time").expect("a waiter");
        assert_eq!(jobs(&reply.expect("an answer")).len(), 1);
    }
    // MONITOR shows a call a little later.
    let seen = async || if pulls(&watch) >= WAITERS as u64 { Ok(()) } else { Err(pulls(&watch)) };
    eventually(SOON, "each of them asks the store", seen).await;
    // A reserve without a wait calls the store itself.
    stack.accept(&pull("last")).await;
    assert_eq!(stack.reserve_one(TOPIC, &json!({})).await["id"], "last");
}

#[tokio::test]
async fn who_comes_while_the_store_is_away_learns_of_it_though_others_wait() {
    let mut stack = Stack::options().unchecked().start().await;
    let mut waiters = JoinSet::new();
    waiters.spawn(waiting(&stack, &json!({"wait": "25s"})));
    assert!(timeout(Duration::from_millis(500), waiters.join_next()).await.is_err());
    stack.redis_mut().kill();
    eventually(SOON, "a refusal", async || {
        let reply = waiting(&stack, &json!({"wait": "1s"})).await;
        if reply.status == 503 { Ok(()) } else { Err(reply.status) }
    })
    .await;
    assert!(timeout(Duration::ZERO, waiters.join_next()).await.is_err(), "the first one waits on");
}
