//! Cases of carriers: each claim of a shard fences the earlier one, and members of the group join, stay and drop out.

use ringback_core::store_types::{Epoch, Pass};

use super::job_builders::{LONG, ms};
use super::workbench::{SOON, Workbench, at_most};
use crate::prelude::*;

async fn is_fenced(bench: &Workbench, epoch: &Epoch) -> bool {
    bench.store().promote(bench.shard(), epoch, at_most(10)).await.expect("promote") == Pass::Fenced
}

pub(crate) async fn each_claim_has_a_later_epoch_and_fences_the_one_before(bench: &Workbench) {
    let (store, shard) = (bench.store(), bench.shard());
    let mut epochs = vec![bench.epoch().clone()];
    for n in 0..20 {
        epochs.push(store.take_shard(shard, ["one", "two", "two"][n % 3]).await.expect("claim"));
        let (last, old) = epochs.split_last().expect("some");
        assert!(!is_fenced(bench, last).await);
        assert!(!old.contains(last), "an epoch came twice");
        assert!(is_fenced(bench, &old[old.len() - 1]).await);
    }
    assert!(is_fenced(bench, &epochs[0]).await);
    let other = store.shards().find(|other| *other != shard).expect("another shard");
    store.take_shard(other, "three").await.expect("claim");
    assert!(!is_fenced(bench, &epochs[20]).await, "another shard has another holder");
}

pub(crate) async fn a_shard_is_given_back_only_by_who_holds_it(bench: &Workbench) {
    let (store, shard) = (bench.store(), bench.shard());
    let epoch = store.take_shard(shard, "another").await.expect("claim");
    store.release_shard(shard, bench.epoch()).await.expect("give back");
    assert!(!is_fenced(bench, &epoch).await, "it was given back by who does not hold it");
    store.release_shard(shard, &epoch).await.expect("give back");
    let next = store.take_shard(shard, "third").await.expect("claim");
    assert_ne!(next, epoch);
    assert!(is_fenced(bench, &epoch).await);
    assert!(!is_fenced(bench, &next).await);
}

pub(crate) async fn members_join_stay_and_leave(bench: &Workbench) {
    let store = bench.store();
    let alone = store.heartbeat("b", LONG).await.expect("members");
    assert_eq!((alone.carriers, alone.next_change), (vec!["b".to_owned()], None));
    let both = store.heartbeat("a", LONG / 2).await.expect("members");
    assert!(both.next_change.is_some_and(|next| next <= LONG && next > LONG / 2), "{both:?}");
    let seen = store.heartbeat("b", LONG).await.expect("members");
    assert_eq!(seen.carriers, ["a", "b"]);
    let later = store.heartbeat("a", 2 * LONG).await.expect("members");
    assert_eq!((&seen.carriers, &later.carriers), (&both.carriers, &both.carriers), "all see one order");
    let left = store.heartbeat("a", Duration::ZERO).await.expect("members");
    assert_eq!((left.carriers, left.next_change.is_some()), (vec!["b".to_owned()], true));
    let none = store.heartbeat("b", Duration::ZERO).await.expect("members");
    assert!(none.carriers.is_empty() && none.next_change.is_none(), "{none:?}");
}

pub(crate) async fn a_member_that_is_not_heard_of_drops_out(bench: &Workbench) {
    let store = bench.store();
    store.heartbeat("silent", ms(80)).await.expect("members");
    let seen = store.heartbeat("loud", LONG).await.expect("members");
    assert!(seen.next_change.is_none_or(|next| next <= ms(80)), "{seen:?}");
    eventually(SOON, "the silent one drops out", async || {
        let carriers = store.heartbeat("loud", LONG).await.expect("members").carriers;
        if carriers == ["loud"] { Ok(()) } else { Err(carriers.join(" ")) }
    })
    .await;
}
