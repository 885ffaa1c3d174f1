//! Cases of `exchange`, which settles and reserves in one call: results of both, limits, repetitions and stale settles.

use ringback_core::store_types::{Lease, Reserve, SettleResult};

use super::job_builders::{LONG, bury, ms, release, retry};
use super::workbench::Workbench;
use crate::prelude::*;

fn names(leases: &[Lease]) -> Vec<String> {
    leases.iter().map(|lease| lease.key.id.to_string()).collect()
}

/// Submits jobs, reserves all of them, and repeats that call: two copies of each lease.
async fn reserved_twice(bench: &Workbench, jobs: &[&str]) -> [Vec<Lease>; 2] {
    for name in jobs {
        bench.accept(bench.job(name)).await;
    }
    let ask = bench.ask(jobs.len());
    let leases = [bench.reserve(&ask).await.leases, bench.reserve(&ask).await.leases];
    assert!(leases.iter().all(|leases| leases.len() == jobs.len()), "{leases:?}");
    leases
}

fn all_complete(leases: Vec<Lease>) -> Vec<(Lease, Outcome)> {
    leases.into_iter().map(|lease| (lease, Outcome::Complete)).collect()
}

pub(crate) async fn an_exchange_settles_every_outcome_and_then_reserves_ready_jobs(bench: &Workbench) {
    let [leases, _] = reserved_twice(bench, &["a", "b", "c", "d", "e"]).await;
    let keys: Vec<_> = leases.iter().map(|lease| lease.key.clone()).collect();
    let waiting = bench.accept(bench.job("f")).await.key;
    let outcomes = [Outcome::Complete, retry(LONG), bury(), release(ms(0)), release(LONG)];
    let items = leases.into_iter().zip(outcomes).collect();
    let (settled, reserved) = bench.exchange(items, &bench.ask(10)).await;
    assert_eq!(settled, [SettleResult::Applied; 5]);
    let taken: Vec<_> = reserved.leases.iter().map(|lease| (&lease.key, lease.attempt)).collect();
    assert_eq!(taken, [(&keys[3], 2), (&waiting, 1)], "what was released had its turn before");
    assert!(!reserved.more && reserved.full.is_empty(), "{reserved:?}");
    let mut states = Vec::new();
    for key in &keys {
        states.push(bench.get(key).await.state);
    }
    use State::{Dead, Delayed, Done, Reserved};
    assert_eq!(states, [Done, Delayed, Dead, Reserved, Delayed]);
    let settled = bench.settle_all(all_complete(reserved.leases)).await;
    assert_eq!(settled, [SettleResult::Applied; 2]);
}

pub(crate) async fn an_exchange_keeps_to_its_limits_and_reports_that_there_is_more(bench: &Workbench) {
    let [leases, _] = reserved_twice(bench, &["a", "b"]).await;
    for n in 0..5 {
        bench.accept(bench.job(&format!("job-{n}"))).await;
        bench.accept(bench.job_of("full", &format!("job-{n}"))).await;
    }
    let lane = "full http://receiver.example".to_owned();
    let ask = Reserve { lane_limits: vec![(lane.clone(), 0)], ..bench.ask(3) };
    let (settled, reserved) = bench.exchange(all_complete(leases), &ask).await;
    assert_eq!(settled, [SettleResult::Applied; 2]);
    assert!(reserved.leases.iter().all(|lease| lease.key.topic.as_str() == "store"));
    assert_eq!((reserved.leases.len(), reserved.more, reserved.full), (3, true, vec![lane]));
}

pub(crate) async fn a_repeated_exchange_gives_the_same_leases_and_changes_nothing(bench: &Workbench) {
    let [leases, same] = reserved_twice(bench, &["a", "b", "c"]).await;
    for name in ["d", "e", "f", "g"] {
        bench.accept(bench.job(name)).await;
    }
    let outcomes = || [Outcome::Complete, retry(LONG), release(ms(0))];
    let (ask, store) = (bench.ask(3), bench.store());
    let items = leases.into_iter().zip(outcomes()).collect();
    let first = store.exchange(bench.shard(), items, &ask).await.expect("exchange");
    let stats = bench.stats().await;
    assert_eq!(stats.states.reserved, 3);
    let items = same.into_iter().zip(outcomes()).collect();
    let again = store.exchange(bench.shard(), items, &ask).await.expect("exchange");
    assert_eq!((first.0, again.0), (vec![SettleResult::Applied; 3], vec![SettleResult::Replayed; 3]));
    assert_eq!(first.1.leases.len(), 3);
    assert_eq!(names(&first.1.leases), names(&again.1.leases));
    assert_eq!(bench.stats().await, stats);
    // Both answers have the same leases.
    assert_eq!(bench.settle_all(all_complete(first.1.leases)).await, [SettleResult::Applied; 3]);
    assert_eq!(bench.settle_all(all_complete(again.1.leases)).await, [SettleResult::Replayed; 3]);
}

pub(crate) async fn an_exchange_is_repeated_by_its_two_halves_as_well(bench: &Workbench) {
    let [leases, same] = reserved_twice(bench, &["a", "b"]).await;
    bench.accept(bench.job("c")).await;
    let ask = bench.ask(5);
    let (_, first) = bench.exchange(all_complete(leases), &ask).await;
    let again = bench.reserve(&ask).await;
    assert_eq!((names(&first.leases), first.leases.len()), (names(&again.leases), 1));
    assert_eq!(bench.settle_all(all_complete(same)).await, [SettleResult::Replayed; 2]);
}

pub(crate) async fn a_stale_settle_does_not_keep_an_exchange_from_reserving(bench: &Workbench) {
    let stale = bench.stale_lease(bench.job("a")).await;
    bench.accept(bench.job("b")).await;
    let current = bench.take(2).await;
    bench.accept(bench.job("c")).await;
    let keys: Vec<_> = current.iter().map(|lease| lease.key.clone()).collect();
    let mut items = vec![(stale, retry(LONG))];
    items.extend(all_complete(current));
    let (settled, reserved) = bench.exchange(items, &bench.ask(5)).await;
    assert_eq!(settled, [SettleResult::Stale, SettleResult::Applied, SettleResult::Applied]);
    assert_eq!(names(&reserved.leases), [bench.job("c").key.id.to_string()]);
    assert_eq!(keys.len(), 2);
    for key in &keys {
        assert_eq!(bench.state(key).await, Some(State::Done));
    }
}

pub(crate) async fn two_leases_of_one_job_in_an_exchange_are_settled_in_turn(bench: &Workbench) {
    let [one, same] = reserved_twice(bench, &["a", "b"]).await;
    bench.accept(bench.job("c")).await;
    let items = all_complete(one.into_iter().chain(same).collect());
    let (settled, reserved) = bench.exchange(items, &bench.ask(5)).await;
    use SettleResult::{Applied, Replayed};
    assert_eq!(settled, [Applied, Applied, Replayed, Replayed]);
    assert_eq!(reserved.leases.len(), 1);
}

pub(crate) async fn an_exchange_of_one_half_is_that_half(bench: &Workbench) {
    let [leases, _] = reserved_twice(bench, &["a", "b"]).await;
    let (settled, reserved) = bench.exchange(all_complete(leases), &bench.ask(5)).await;
    assert_eq!(settled, [SettleResult::Applied; 2]);
    assert!(reserved.leases.is_empty() && !reserved.more && reserved.full.is_empty(), "{reserved:?}");
    bench.accept(bench.job("c")).await;
    let (settled, reserved) = bench.exchange(Vec::new(), &bench.ask(5)).await;
    assert_eq!((settled.len(), reserved.leases.len()), (0, 1));
}

pub(crate) async fn exchanges_alone_bring_every_job_to_its_end_once(bench: &Workbench) {
    let jobs: Vec<_> = (0..200).map(|n| bench.job_of(["a", "b"][n % 2], &format!("job-{n}"))).collect();
    bench.submit(&jobs).await;
    let (mut held, mut seen) = (Vec::new(), Vec::new());
    loop {
        let (settled, reserved) = bench.exchange(all_complete(held), &bench.ask(32)).await;
        assert!(settled.iter().all(|settled| *settled == SettleResult::Applied), "{settled:?}");
        seen.extend(reserved.leases.iter().map(|lease| lease.key.to_string()));
        if reserved.leases.is_empty() && !reserved.more {
            break;
        }
        held = reserved.leases;
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!((seen.len(), bench.stats().await.states.done), (200, 200));
}
