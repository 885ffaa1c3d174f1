//! Installations with different prefixes on one Redis do not see each other; another number of shards is refused.

use ringback_testkit::{RedisServer, Role};

use crate::prelude::*;

#[tokio::test]
async fn installations_with_different_prefixes_do_not_see_each_other() {
    let redis = RedisServer::start().await;
    let options = Stack::options().store(&redis.url());
    let (one, other) = (options.clone().start().await, options.env("RINGBACK_PREFIX", "other").start().await);
    let (sink, other_sink) = (Sink::start().await, Sink::start().await);

    // Both installations have jobs of the same names with other contents.
    for id in ["now", "cancelled", "dead"] {
        sink.answer_job(id, Answer::status(if id == "dead" { 410 } else { 200 }));
        let delay = if id == "cancelled" { "3s" } else { "0s" };
        one.accept(&with(job(&sink, id), "delay", delay)).await;
        other.accept(&with(job(&other_sink, id), "delay", delay)).await;
    }
    one.accept(&with(job(&sink, "mine"), "delay", "1h")).await;
    assert_eq!(other.job(TOPIC, "mine").await.0, 404);
    assert_eq!(other.cancel(TOPIC, "mine").await.0, 404);
    assert_eq!(one.cancel(TOPIC, "cancelled").await.0, 200);

    one.wait_state(TOPIC, "dead", "dead", SOON).await;
    for id in ["now", "cancelled", "dead"] {
        other.wait_state(TOPIC, id, "done", SOON).await;
    }
    one.wait_state(TOPIC, "now", "done", SOON).await;
    assert_eq!((sink.seen(), other_sink.seen()), (2, 3), "a job is delivered by its own installation only");
    let counts = |delayed, done, dead, cancelled| {
        let ended = json!({"done": done, "dead": dead, "cancelled": cancelled, "purged": 0, "missing": 0});
        with(with(with(ended, "delayed", delayed), "ready", 0), "reserved", 0)
    };
    assert_eq!(one.stats().await["states"], counts(1, 1, 1, 1));
    assert_eq!(other.stats().await["states"], counts(0, 3, 0, 0));

    let keys: Vec<String> =
        redis::cmd("KEYS").arg("*").query_async(&mut redis.client().await).await.expect("KEYS");
    let stray: Vec<_> =
        keys.iter().filter(|key| !key.starts_with("ringback:") && !key.starts_with("other:")).collect();
    assert!(stray.is_empty(), "{stray:?}");
}

#[tokio::test]
async fn another_number_of_shards_is_refused_with_both_numbers() {
    let stack = Stack::options().env("RINGBACK_SHARDS", "3").start().await;
    for role in [Role::Api, Role::Carrier, Role::Notifier] {
        let mut process = stack.spec(role).env("RINGBACK_SHARDS", "5").start();
        let status = process.wait_exit(SOON).await;
        let log = process.log();
        assert_eq!(status.code(), Some(1), "{log}");
        for text in ["3 shards", "not 5", "RINGBACK_SHARDS=3"] {
            assert!(log.contains(text), "no {text} in {log}");
        }
    }
    // No installation exists under the other prefix, so other settings are accepted there.
    let spec = stack.spec(Role::Carrier).env("RINGBACK_SHARDS", "5").env("RINGBACK_PREFIX", "other");
    spec.start().ready(SOON).await;
}
