//! Cases of `prepare`, which checks a store before the first call. Checks of Redis servers are in
//! `redis_layout::server_settings`.

use ringback_core::store_types::{Options, StoreError};

use super::workbench::{FLOOR, Workbench, at_most};

pub(crate) async fn nothing_is_answered_before_the_checks_have_succeeded(bench: &Workbench) {
    let store = bench.another(bench.options());
    let (shard, job) = (bench.shard(), bench.job("a"));
    let unprepared = [
        store.get(&job.key).await.err(),
        store.cancel(&job.key).await.err(),
        store.stats().await.err(),
        store.take_shard(shard, "other").await.err(),
        store.heartbeat("other", FLOOR).await.err(),
        store.promote(shard, bench.epoch(), at_most(1)).await.err(),
        store.reserve(shard, &bench.ask(1)).await.err(),
        store.submit(shard, &[job]).await.err(),
    ];
    for error in unprepared {
        assert!(matches!(error, Some(StoreError::Unprepared)), "{error:?}");
    }
    store.prepare().await.expect("the store is fit");
    assert_eq!(store.stats().await.expect("stats").accepted, 0);
}

pub(crate) async fn an_installation_of_another_shard_count_is_refused(bench: &Workbench) {
    let options = bench.options();
    let other = Options { shards: options.shards + 1, ..options };
    let store = bench.another(other);
    let error = store.prepare().await.expect_err("another number of shards");
    assert!(matches!(&error, StoreError::Unfit(why) if why.contains("3 shards")), "{error}");
    assert!(!error.is_transient());
    assert!(matches!(store.stats().await, Err(StoreError::Unprepared)));
}

pub(crate) async fn preparing_again_changes_nothing(bench: &Workbench) {
    let job = bench.accept(bench.job("a")).await;
    bench.store().prepare().await.expect("still fit");
    assert_eq!(bench.get(&job.key).await, job);
}
