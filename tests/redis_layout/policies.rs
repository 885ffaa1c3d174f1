//! Policies in Redis that were changed by hand, or whose change was not published.

use redis::aio::MultiplexedConnection;
use ringback_core::store_types::StoreError;
use ringback_store::SharedConfig;

use crate::contract::policies::{SECOND, keeping, knows, put, timeout, topic};
use crate::contract::workbench::{SOON, Workbench};
use crate::prelude::*;
use crate::redis_layout::keys;

/// Writes a policy and its version without publishing the change.
async fn put_in_silence(bench: &Workbench, redis: &mut MultiplexedConnection, name: &str, json: &str) {
    let key = format!("{}:{{meta}}:policies", bench.options().prefix);
    keys::run(redis, &[b"HSET", key.as_bytes(), name.as_bytes(), json.as_bytes()]).await;
    keys::run(redis, &[b"INCR", format!("{key}:version").as_bytes()]).await;
}

#[tokio::test]
async fn a_change_that_was_not_published_is_known_within_seconds() {
    let (bench, mut redis) = keys::bench().await;
    let shared = SharedConfig::default();
    put(bench.store(), "before", "{}").await;
    keeping(shared.clone(), bench.store().clone(), async {
        shared.known().await;
        put(bench.store(), "notified", r#"{"timeout":1}"#).await;
        knows(&shared, "notified", Some(1), SOON).await;
        put_in_silence(&bench, &mut redis, "silent", r#"{"timeout":2}"#).await;
        knows(&shared, "silent", Some(2), Duration::from_secs(7)).await;
    })
    .await;
}

#[tokio::test]
async fn after_a_lost_subscription_the_policies_are_read_at_once() {
    let (bench, mut redis) = keys::bench().await;
    let shared = SharedConfig::default();
    put(bench.store(), "before", "{}").await;
    keeping(shared.clone(), bench.store().clone(), async {
        shared.known().await;
        for n in 1..4 {
            put(bench.store(), "notified", &format!(r#"{{"timeout":{n}}}"#)).await;
            knows(&shared, "notified", Some(n), SOON).await;
            put_in_silence(&bench, &mut redis, "silent", &format!(r#"{{"timeout":{n}}}"#)).await;
            keys::run(&mut redis, &[b"CLIENT", b"KILL", b"TYPE", b"pubsub"]).await;
            knows(&shared, "silent", Some(n), Duration::from_secs(2)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_policy_that_cannot_be_read_stops_no_other() {
    let (bench, mut redis) = keys::bench().await;
    put(bench.store(), "good", r#"{"timeout":1}"#).await;
    put_in_silence(&bench, &mut redis, "bad", r#"{"a field of a later version":1}"#).await;
    let (_, policies) = bench.store().policies(None).await.expect("policies").expect("nothing is known");
    assert_eq!(policies.len(), 1);
    let shared = SharedConfig::default();
    keeping(shared.clone(), bench.store().clone(), async {
        shared.known().await;
        assert!(shared.is_unreadable(&topic("bad")) && !shared.is_unreadable(&topic("good")));
    })
    .await;
    let error = bench.store().policy(&topic("bad")).await.expect_err("it cannot be read");
    assert!(matches!(error, StoreError::Unreadable(_)), "{error}");
}

/// A server that has lost the last changes has an earlier version, and later the same version with other content.
#[tokio::test]
async fn versions_grow_past_a_counter_that_was_rolled_back() {
    let (bench, mut redis) = keys::bench().await;
    let shared = SharedConfig::default();
    put(bench.store(), "kept", "{}").await;
    keeping(shared.clone(), bench.store().clone(), async {
        put(bench.store(), "lost", r#"{"timeout":1}"#).await;
        knows(&shared, "lost", Some(1), SOON).await;
        let key = format!("{}:{{meta}}:policies", bench.options().prefix);
        keys::run(&mut redis, &[b"HDEL", key.as_bytes(), b"lost"]).await;
        keys::run(&mut redis, &[b"SET", format!("{key}:version").as_bytes(), b"5"]).await;
        put(bench.store(), "next", r#"{"timeout":2}"#).await;
        knows(&shared, "next", Some(2), SECOND).await;
        assert_eq!(timeout(&shared, "lost"), Ok(None), "what was lost is not kept here");
    })
    .await;
}
