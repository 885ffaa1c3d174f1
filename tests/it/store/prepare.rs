//! Before the first job: what a store is checked for. What only a Redis server can have wrong is in `servers`.

use ringback_core::contract::{Options, StoreError};

use super::bench::{Bench, FLOOR};

pub(super) async fn nothing_is_answered_before_the_checks_have_succeeded(bench: &Bench) {
    let store = bench.another(bench.options());
    let (shard, job) = (bench.shard(), bench.job("a"));
    let unprepared = [
        store.get(&job.key).await.err(),
        store.cancel(&job.key).await.err(),
        store.stats().await.err(),
        store.claim(shard, "other").await.err(),
        store.heartbeat("other", FLOOR).await.err(),
        store.promote(shard, bench.epoch(), 1, FLOOR).await.err(),
        store.reserve(shard, &bench.ask(1)).await.err(),
        store.submit(shard, &[job]).await.err(),
    ];
    for error in unprepared {
        assert!(matches!(error, Some(StoreError::Unprepared)), "{error:?}");
    }
    store.prepare().await.expect("the store is fit");
    assert_eq!(store.stats().await.expect("stats").accepted, 0);
}

pub(super) async fn an_installation_of_another_shard_count_is_refused(bench: &Bench) {
    let options = bench.options();
    let other = Options { shards: options.shards + 1, ..options };
    let store = bench.another(other);
    let error = store.prepare().await.expect_err("another number of shards");
    assert!(matches!(&error, StoreError::Unfit(why) if why.contains("3 shards")), "{error}");
    assert!(!error.is_transient());
    assert!(matches!(store.stats().await, Err(StoreError::Unprepared)));
}

pub(super) async fn preparing_again_changes_nothing(bench: &Bench) {
    let job = bench.accept(bench.job("a")).await;
    bench.store().prepare().await.expect("still fit");
    assert_eq!(bench.get(&job.key).await, job);
}
