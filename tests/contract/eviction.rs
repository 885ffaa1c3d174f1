//! Cases of eviction: dead jobs go after their retention, passes have limits, ended jobs are remembered for their time.

use ringback_core::store_types::{Cancelled, Pass, SubmitResult};

use super::job_builders::{With, bury, ms};
use super::workbench::{SOON, Workbench, at_most, now};
use crate::prelude::*;

pub(crate) async fn a_dead_job_past_its_retention_is_gone_and_counted(bench: &Workbench) {
    let bench = bench.with(|options| options.keep_dead = ms(60)).await;
    let died = now();
    let job = bench.job_in(State::Dead, bench.job("a").body(noise(7, 5000).into())).await;
    let evicted = eventually(SOON, "the dead job is gone", async || match bench.evict(10).await {
        pass if pass.moved == 0 => Err("it is still there"),
        pass => Ok(pass),
    })
    .await;
    assert!(now() >= died.plus(ms(60)), "it was kept for too short a time");
    assert_eq!((evicted.moved, evicted.next_dead), (1, None));
    assert_eq!(bench.state(&job.key).await, None);
    let stats = bench.stats().await;
    assert_eq!((stats.accepted, stats.states.dead, stats.states.purged), (1, 0, 1));
    assert_eq!(bench.cancel(&job.key).await, Cancelled::Unknown);
    bench.accept(bench.job("a").content(9)).await;
    bench.check().await;
}

pub(crate) async fn a_dead_job_within_its_retention_stays(bench: &Workbench) {
    let job = bench.job_in(State::Dead, bench.job("a")).await;
    let pass = bench.evict(10).await;
    let keep = bench.options().keep_dead;
    assert_eq!(pass.moved, 0);
    assert!(pass.next_dead.is_some_and(|next| next <= keep && next > keep / 2), "{pass:?}");
    assert_eq!(bench.get(&job.key).await, job);
}

pub(crate) async fn an_ended_job_is_remembered_for_its_time_and_then_its_id_is_free(bench: &Workbench) {
    let keep = ms(300);
    let bench = bench.with(|options| options.keep_done = keep).await;
    for state in [State::Done, State::Cancelled] {
        let name: &str = state.into();
        let at = now();
        let ended = bench.job_in(state, bench.job(name)).await;
        let mut n = 0;
        eventually(SOON, "the id is free", async || {
            // Tombstones are removed only when later jobs end.
            n += 1;
            bench.job_in(State::Done, bench.job(&format!("{name}-other-{n}"))).await;
            let answer = bench.submit(&[bench.job(name).content(9)]).await.remove(0);
            match answer.answer {
                SubmitResult::Created => Ok(()),
                other => {
                    assert_eq!((other, answer.job), (SubmitResult::Conflict, ended.clone()));
                    Err("it is still remembered")
                }
            }
        })
        .await;
        assert!(now() >= at.plus(keep), "it was evicted after {:?}", now().since(at));
        assert_eq!(bench.take(1).await.len(), 1);
    }
    assert_eq!(bench.stats().await.evicted_early, 0);
    bench.check().await;
}

pub(crate) async fn a_pass_evicts_no_more_than_its_limit(bench: &Workbench) {
    let bench = bench.with(|options| options.keep_dead = ms(0)).await;
    for n in 0..5 {
        bench.accept(bench.job(&format!("job-{n}"))).await;
    }
    let leases = bench.take(5).await;
    bench.settle_all(leases.into_iter().map(|lease| (lease, bury())).collect()).await;
    let mut moved = Vec::new();
    for _ in 0..4 {
        let pass = bench.evict(2).await;
        moved.push(pass.moved);
        let more = moved.iter().sum::<u32>() < 5;
        assert_eq!(pass.next_dead, more.then_some(ms(0)), "after {moved:?}");
    }
    assert_eq!(moved, [2, 2, 1, 0]);
    bench.check().await;
}

pub(crate) async fn a_fenced_pass_evicts_nothing(bench: &Workbench) {
    let bench = bench.with(|options| options.keep_dead = ms(0)).await;
    let job = bench.job_in(State::Dead, bench.job("a")).await;
    let (store, shard) = (bench.store(), bench.shard());
    let epoch = store.take_shard(shard, "another").await.expect("claim");
    let pass = store.evict(shard, bench.epoch(), at_most(10)).await.expect("evict");
    assert_eq!(pass, Pass::Fenced);
    assert_eq!(bench.get(&job.key).await, job);
    let pass = store.evict(shard, &epoch, at_most(10)).await.expect("evict");
    assert!(matches!(pass, Pass::Held { moved: 1, .. }), "{pass:?}");
    bench.check().await;
}
