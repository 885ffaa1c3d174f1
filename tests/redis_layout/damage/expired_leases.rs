//! Expired leases of pull jobs in Redis of which one cannot be read: the others are recovered all the same.

use ringback_core::outcome::{LastAttempt, Outcome};
use ringback_core::retry::RetryPolicy;
use ringback_core::state::State;
use ringback_core::store_types::SettleResult;

use super::{bench, key, run};
use crate::contract::job_builders::{LONG, ms};
use crate::contract::workbench::Workbench;

/// Submits two pull jobs and reserves them with leases of 20 ms.
async fn taken(bench: &Workbench) {
    for name in ["unreadable", "well"] {
        let mut job = bench.pull_job(name);
        job.delivery.retry = RetryPolicy::preset("none");
        let job = bench.accept(job).await;
        bench.pull_one(&job.key, ms(20)).await;
    }
}

#[tokio::test]
async fn a_job_that_cannot_be_read_keeps_none_of_the_others_whose_leases_ran_out() {
    let (bench, mut redis) = bench().await;
    taken(&bench).await;
    let locator = |name: &str| bench.pull_job(name).key.locator().0;
    // An error that is longer than what there is.
    let runs = key(&mut redis, "states").await;
    let raw: Vec<u8> = redis::cmd("HGET")
        .arg(&runs)
        .arg(&locator("unreadable"))
        .query_async(&mut redis)
        .await
        .expect("a run");
    let broken = [&raw[..65], &[200], &raw[66..]].concat();
    run(&mut redis, &[b"HSET", runs.as_bytes(), &locator("unreadable"), &broken]).await;

    let expired = bench.expired_leases(1).await.remove(0);
    assert_eq!(expired.tries.retry, RetryPolicy::preset("none"));
    let outcome = Outcome::Retry { after: LONG, last: LastAttempt::by_consumer(None) };
    let settled = bench.store().settle_expired(bench.shard(), &[(expired.receipt, outcome)]).await;
    assert_eq!(settled.expect("settle"), [SettleResult::Applied]);
    assert_eq!(bench.get(&bench.pull_job("well").key).await.state, State::Delayed);
}
