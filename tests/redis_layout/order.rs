//! Audits what ordered topics keep in Redis: the head of each key is a job, and the jobs behind it are counted.

use std::collections::BTreeMap;

use redis::aio::MultiplexedConnection;
use redis::cmd;
use ringback_testkit::shard_field;

use super::audit::{ask, number};

/// The bytes of a place and a locator at the end of a member of those that wait.
const END: usize = 24;

async fn topics(redis: &mut MultiplexedConnection, base: &str) -> Vec<String> {
    ask(redis, cmd("HKEYS").arg(format!("{base}:ordered"))).await
}

async fn behind(redis: &mut MultiplexedConnection, base: &str, topic: &str) -> Vec<Vec<u8>> {
    ask(redis, cmd("ZRANGE").arg(format!("{base}:behind:{topic}")).arg(&[0, -1])).await
}

/// Whether a job with this locator and due time (6 bytes) waits behind another one of its key.
pub(super) async fn waits(redis: &mut MultiplexedConnection, base: &str, locator: &[u8], due: &[u8]) -> bool {
    for topic in topics(redis, base).await {
        let members = behind(redis, base, &topic).await;
        if members.iter().any(|one| one.ends_with(locator) && one[one.len() - END..].starts_with(due)) {
            return true;
        }
    }
    false
}

/// Checks that each key with jobs that wait has a head that is a job, and that both are counted.
pub(super) async fn heads(redis: &mut MultiplexedConnection, base: &str) {
    let (topics, mut waiting) = (topics(redis, base).await, 0);
    for topic in &topics {
        let mut by_key: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
        for member in behind(redis, base, topic).await {
            *by_key.entry(member[..member.len() - END - 1].to_vec()).or_default() += 1;
        }
        waiting += by_key.len();
        let mut heads: BTreeMap<Vec<u8>, Vec<u8>> =
            ask(redis, cmd("HGETALL").arg(format!("{base}:heads:{topic}"))).await;
        // One entry has no key.
        heads.remove(&Vec::new());
        for (key, head) in heads {
            let (locator, count) = head.split_at(12);
            let name = String::from_utf8_lossy(&key);
            assert_eq!(by_key.remove(&key).unwrap_or(0), number(count), "jobs behind the head of {name}");
            let is_job: bool = ask(redis, cmd("HEXISTS").arg(format!("{base}:pool")).arg(locator)).await;
            assert!(is_job, "the head of {name} in {base} is no job");
        }
        assert!(by_key.is_empty(), "jobs of {topic} in {base} wait behind no head: {by_key:?}");
    }
    let shard = format!("{base}:shard");
    assert_eq!(shard_field(redis, &shard, "ordered").await, topics.len() as i64, "ordered topics of {base}");
    assert_eq!(
        shard_field(redis, &shard, "waiting_keys").await,
        waiting as i64,
        "keys of {base} with jobs that wait"
    );
}
