//! Damaged leases in Redis: batches without index entry, which a repair links, jobs twice in a batch, unknown states.

use ringback_core::state::State;
use ringback_core::store_types::{DamageKind, Lease, Repair};
use tokio::time::sleep_until;

use super::{Ground, named};
use crate::contract::job_builders::{BRIEF, With, ms};

#[tokio::test]
async fn a_lease_that_was_linked_again_is_lost_once() {
    let mut ground = Ground::new().await;
    let key = ground.bench.accept(ground.bench.job("brief").timeout(BRIEF)).await.key;
    // The one that was ready before, and this one.
    let taken = ground.bench.take(2).await;
    let leases = ground.key("leases").await;
    ground.run(&[b"DEL", &leases]).await;
    assert!(ground.check(Repair::Yes).await.total() > 0);
    let before = ground.bench.stats().await.states;
    let deadline = taken.iter().find(|lease| lease.key == key).expect("it was taken").deadline();
    sleep_until(deadline + ms(20)).await;

    let pass = ground.bench.recover(10).await;
    assert_eq!((pass.moved, pass.other), (1, 0), "{pass:?}");
    let after = ground.bench.stats().await.states;
    assert_eq!((after.ready, after.reserved), (before.ready + 1, before.reserved - 1), "{after:?}");
    ground.bench.check().await;
    // The lease may expire three times more; the next time the job is dead.
    for _ in 0..3 {
        ground.bench.take_one(&key).await;
        ground.bench.recover_until(&key, State::Ready).await;
    }
    ground.bench.take_one(&key).await;
    ground.bench.recover_until(&key, State::Dead).await;
    ground.bench.check().await;
}

#[tokio::test]
async fn a_job_that_stands_twice_in_its_batch_is_lost_and_given_once() {
    let mut ground = Ground::new().await;
    let batches = ground.key("batches").await;
    let key = ground.bench.accept(ground.bench.job("brief").timeout(BRIEF)).await.key;
    ground.bench.accept(ground.bench.job("beside").timeout(BRIEF)).await;
    let ask = ground.bench.ask(3);
    let taken = ground.bench.reserve(&ask).await.leases;
    let lease = taken.iter().find(|lease| lease.key == key).expect("it was taken");
    let locator = key.locator().0;
    let all: Vec<(Vec<u8>, Vec<u8>)> =
        redis::cmd("HGETALL").arg(&batches).query_async(&mut ground.redis).await.expect("HGETALL");
    let (number, locs) =
        all.iter().find(|(_, locs)| locs.chunks(12).any(|l| l == locator)).expect("its batch");
    ground.run(&[b"HSET", &batches, number, &[locs, &locator[..]].concat()]).await;
    let again = ground.bench.reserve(&ask).await.leases;
    assert_eq!(again.iter().filter(|lease| lease.key == key).count(), 1, "{again:?}");
    sleep_until(lease.deadline() + ms(20)).await;
    let pass = ground.bench.recover(10).await;
    assert_eq!((pass.moved, pass.other), (2, 0), "{pass:?}");
    ground.bench.check().await;
}

#[tokio::test]
async fn all_jobs_of_a_batch_without_an_index_entry_are_linked_again_at_once() {
    let mut ground = Ground::new().await;
    let (leases, batches) = (ground.key("leases").await, ground.key("batches").await);
    let jobs: Vec<_> = (0..5).map(|n| ground.bench.job(&format!("brief-{n}")).timeout(BRIEF)).collect();
    ground.bench.submit(&jobs).await;
    let taken = ground.bench.take(6).await;
    // Beside these jobs there are one that was reserved before and one that was ready, each in a batch of its own.
    for (damage, words, unindexed) in [
        ("no batch", vec![b"DEL".as_slice(), &batches], 5),
        ("no lease", vec![b"DEL", &leases], 7),
        ("neither", vec![b"DEL", &leases, &batches], 7),
    ] {
        ground.run(&words).await;
        let repaired = ground.check(Repair::Yes).await;
        assert_eq!(repaired.found.get(&DamageKind::Unindexed), Some(&unindexed), "{damage}: {repaired:#?}");
        assert!(repaired.is_clean(), "{damage}: {repaired:#?}");
        ground.bench.check().await;
    }
    let brief = taken.iter().filter(|lease| jobs.iter().any(|job| job.key == lease.key));
    let last = brief.map(Lease::deadline).max().expect("they were taken");
    sleep_until(last + ms(20)).await;
    let pass = ground.bench.recover(10).await;
    assert_eq!((pass.moved, pass.other), (5, 0), "{pass:?}");
    ground.bench.check().await;
}

#[tokio::test]
async fn a_job_in_an_unknown_state_is_reported_and_stays() {
    let mut ground = Ground::new().await;
    let (runs, locator) = (ground.key("states").await, ground.retried.key.locator().0);
    let mut strange = ground.read(&runs, &locator).await;
    strange[0] = 9;
    ground.run(&[b"HSET", &runs, &locator, &strange]).await;
    let found = ground.kept("a state that nobody knows", DamageKind::Unindexed).await;
    assert!(named(&found, &ground.retried), "{found:#?}");
}
