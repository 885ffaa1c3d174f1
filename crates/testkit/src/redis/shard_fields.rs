//! The numbers of a shard as Redis stores them: packed in three values of the shard's hash, each number a double. Tests read
//! them and change them behind the back of the transitions.

use std::collections::BTreeMap;

use redis::aio::ConnectionLike;
use redis::{ToRedisArgs, cmd};

/// The values, and what each has.
const LAYOUT: [(&str, &[&str]); 3] = [
    (
        "fields",
        &[
            "accepted",
            "delayed",
            "ready",
            "reserved",
            "done",
            "lease",
            "next",
            "slot",
            "lease_at",
            "sized",
            "segment_size",
            "waiter",
            "waits_until",
            "unusual",
        ],
    ),
    ("keys", &["fronts", "segment", "segment_at", "segment_was", "attempts_segment", "attempts_at"]),
    (
        "more",
        &[
            "dead",
            "cancelled",
            "purged",
            "missing",
            "replaced",
            "lanes",
            "topics",
            "pauses",
            "unqueued",
            "tombstones_evicted_early",
            "attempts_size",
            "watched_since",
            "archive_first",
            "archive_bytes",
            "archive_bound",
            "archive_dropped",
            "epoch",
            "dead_at",
            "next_notice_at",
            "next_firing_at",
            "paused",
            "paused_hosts",
            "limits",
            "watched",
            "archive",
            "ordered",
            "ordered_at",
            "numbered",
            "waiting_keys",
        ],
    ),
];

/// Changes a number in one step, and returns it. A value that is not there has zeros.
const CHANGE: &str = "local value = redis.call('HGET', KEYS[1], ARGV[1]) or string.rep('\\0', ARGV[2] * 8)
    local at = ARGV[3] * 8 + 1
    local number = struct.unpack('<d', value, at)
    if ARGV[4] == 'get' then return string.format('%.0f', number) end
    number = (ARGV[4] == 'add' and number or 0) + ARGV[5]
    value = string.sub(value, 1, at - 1) .. struct.pack('<d', number) .. string.sub(value, at + 8)
    redis.call('HSET', KEYS[1], ARGV[1], value)
    return string.format('%.0f', number)";

/// All numbers in a shard's hash; those of a value that is not there are left out.
///
/// # Panics
/// If a value has another length.
#[must_use]
pub fn shard_fields(hash: &BTreeMap<Vec<u8>, Vec<u8>>) -> BTreeMap<&'static str, i64> {
    let mut all = BTreeMap::new();
    for (value, names) in LAYOUT {
        let Some(bytes) = hash.get(value.as_bytes()) else { continue };
        let (numbers, rest) = bytes.as_chunks::<8>();
        assert!(rest.is_empty() && numbers.len() == names.len(), "{value} has {} bytes", bytes.len());
        all.extend(
            names.iter().copied().zip(numbers.iter().map(|number| f64::from_le_bytes(*number) as i64)),
        );
    }
    all
}

/// A number of the shard with this key.
pub async fn shard_field(redis: &mut impl ConnectionLike, key: impl ToRedisArgs, name: &str) -> i64 {
    change(redis, key, name, "get", 0).await
}

/// Sets a number of the shard with this key.
pub async fn set_shard_field(
    redis: &mut impl ConnectionLike,
    key: impl ToRedisArgs,
    name: &str,
    number: i64,
) {
    change(redis, key, name, "set", number).await;
}

/// Adds to a number of the shard with this key.
pub async fn add_to_shard_field(
    redis: &mut impl ConnectionLike,
    key: impl ToRedisArgs,
    name: &str,
    more: i64,
) {
    change(redis, key, name, "add", more).await;
}

async fn change(
    redis: &mut impl ConnectionLike,
    key: impl ToRedisArgs,
    name: &str,
    how: &str,
    number: i64,
) -> i64 {
    let place = |(value, names): &(&'static str, &[&str])| {
        Some((*value, names.len(), names.iter().position(|one| *one == name)?))
    };
    let (value, size, at) = LAYOUT.iter().find_map(place).expect("a number of shards has this name");
    let mut eval = cmd("EVAL");
    eval.arg(CHANGE).arg(1).arg(key).arg(value).arg(size).arg(at).arg(how).arg(number);
    let number: String = eval.query_async(redis).await.expect("the server changes the number");
    number.parse().expect("a whole number")
}
