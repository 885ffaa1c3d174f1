//! Cases of pull jobs that are cancelled while they are ready or reserved, and of lanes that only have such jobs.

use ringback_core::store_types::{Cancelled, PulledJob, SettleResult};

use super::super::job_builders::{LONG, ms};
use super::super::workbench::Workbench;
use super::{bury, retry, woken};
use crate::prelude::*;

pub(crate) async fn a_cancelled_reserved_pull_job_is_done_when_finished_and_else_cancelled(
    bench: &Workbench,
) {
    let outcomes =
        [(Outcome::Complete, State::Done), (retry(ms(0)), State::Cancelled), (bury(), State::Cancelled)];
    for (n, (outcome, state)) in outcomes.into_iter().enumerate() {
        let job = bench.pulled(&format!("job-{n}")).await;
        assert_eq!(bench.cancel(&job.key).await, Cancelled::Requested { in_flight_unknown: false });
        assert_eq!(bench.settle_receipt(job.receipt, outcome.clone()).await, SettleResult::Applied);
        assert_eq!(bench.get(&job.key).await.state, state);
        assert_eq!(bench.settle_receipt(job.receipt, outcome).await, SettleResult::Replayed);
    }
}

pub(crate) async fn a_cancelled_job_whose_lease_expires_is_cancelled(bench: &Workbench) {
    let key = bench.accept(bench.pull_job("a")).await.key;
    let job = bench.pull_one(&key, ms(20)).await;
    bench.cancel(&key).await;
    bench.recover_until(&key, State::Cancelled).await;
    assert_eq!(bench.settle_receipt(job.receipt, Outcome::Complete).await, SettleResult::Stale);
}

pub(crate) async fn cancelled_jobs_do_not_block_others(bench: &Workbench) {
    let jobs: Vec<_> = (0..6).map(|n| bench.pull_job(&format!("job-{n}"))).collect();
    bench.submit(&jobs).await;
    for job in &jobs[..5] {
        assert_eq!(bench.cancel(&job.key).await, Cancelled::Cancelled { in_flight_unknown: false });
    }
    loop {
        let pulled = bench.pull(2, LONG).await;
        if let [job] = pulled.jobs.as_slice() {
            return assert_eq!(job.key, jobs[5].key);
        }
        assert!(pulled.more, "{pulled:?}");
    }
}

pub(crate) async fn many_cancelled_jobs_take_few_calls(bench: &Workbench) {
    let jobs: Vec<_> = (0..91).map(|n| bench.pull_job(&format!("job-{n}"))).collect();
    bench.submit(&jobs).await;
    for job in &jobs[1..90] {
        bench.cancel(&job.key).await;
    }
    let (first, last) = (bench.pull(1, LONG).await, bench.pull(1, LONG).await);
    let names = |jobs: &[PulledJob]| jobs.iter().map(|job| job.key.clone()).collect::<Vec<_>>();
    assert_eq!(names(&first.jobs), [jobs[0].key.clone()]);
    assert_eq!((names(&last.jobs), last.more), (vec![jobs[90].key.clone()], false));
    // No more jobs than asked for, although more entries are examined.
    bench.submit(&(0..5).map(|n| bench.pull_job(&format!("next-{n}"))).collect::<Vec<_>>()).await;
    bench.cancel(&bench.pull_job("next-0").key).await;
    let pulled = bench.pull(2, LONG).await;
    assert_eq!((pulled.jobs.len(), pulled.more), (2, true));
    let pulled = bench.pull(9, LONG).await;
    assert_eq!((pulled.jobs.len(), pulled.more), (2, false));
}

pub(crate) async fn a_lane_whose_jobs_were_all_cancelled_is_empty_and_the_next_job_wakes(bench: &Workbench) {
    let mut wakes = bench.wakes().await;
    for count in [1, 3] {
        let jobs: Vec<_> = (0..count).map(|n| bench.pull_job(&format!("of-{count}-{n}"))).collect();
        bench.submit(&jobs).await;
        woken(bench, &mut wakes).await;
        for job in &jobs {
            bench.cancel(&job.key).await;
        }
        let mut pulled = bench.pull(1, LONG).await;
        while pulled.more {
            pulled = bench.pull(1, LONG).await;
        }
        assert!(pulled.jobs.is_empty(), "{pulled:?}");
        assert_eq!(bench.store().pull_topics(bench.shard(), 0, 10).await.expect("pulls"), (Vec::new(), 0));
    }
    let next = bench.accept(bench.pull_job("next")).await.key;
    woken(bench, &mut wakes).await;
    bench.pull_one(&next, LONG).await;
}
