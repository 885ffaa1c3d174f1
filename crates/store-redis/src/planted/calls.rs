//! Bugs that tests plant in the calls of the store.

use std::time::Duration;

use redis::Value;
use ringback_core::clock::{Clock as _, SystemClock};
use ringback_core::contract::{Shard, StoreError, SubmitResult, Submitted};
use ringback_core::job::{Due, Job, NewJob};
use ringback_core::state::State;
use ringback_core::{is_cut, is_planted};
use tokio::time::sleep;

use crate::keys::Place;
use crate::redis_store::RedisStore;
use crate::reply;

/// In this time another submit of the same job finds nothing either.
const OVERLAP: Duration = Duration::from_millis(50);

/// Puts the entries of a lane that a promotion has taken into its ready queue.
const PUSH: &str = "
local base, lane = KEYS[1], ARGV[1]
local prefix, tag = string.match(base, '^(.-):{(.*)}')
redis.call('RPUSH', base .. ':ready:' .. lane, unpack(ARGV, 2))
redis.call('ZADD', base .. ':lanes', 'NX', redis.call('TIME')[1] * 1000000, lane)
redis.call('PUBLISH', prefix .. ':wake', 'ready ' .. tag)";

/// The second of two calls that move due jobs.
pub(crate) async fn move_on(
    store: &RedisStore,
    shard: Shard,
    taken: Option<Value>,
) -> Result<(), StoreError> {
    let Some(taken) = taken.filter(|_| is_planted!("two-call-move")) else { return Ok(()) };
    // Here a process is killed that has taken something.
    let _ = is_cut!("move_on", "before");
    let lanes: Vec<(Vec<u8>, Vec<Vec<u8>>)> = reply::read(taken, "promote")?;
    for (lane, entries) in lanes {
        let mut cmd = redis::cmd("EVAL");
        cmd.arg(PUSH).arg(1).arg(store.keys.base(Place::Shard(shard))).arg(lane).arg(entries);
        store.topology.call(&cmd, Place::Shard(shard)).await?;
    }
    Ok(())
}

/// The answers to submits of jobs that a call of its own has found, in place of the script's own check.
pub(crate) async fn found_before(
    store: &RedisStore,
    shard: Shard,
    jobs: &[&NewJob],
) -> Result<Vec<Option<Submitted>>, StoreError> {
    let mut found = vec![None; jobs.len()];
    if is_planted!("idempotency-not-atomic") {
        for (job, found) in jobs.iter().zip(&mut found) {
            let known = store.get(shard, &job.key).await?;
            *found = known.map(|job| Submitted { answer: SubmitResult::Repeated, job });
        }
        sleep(OVERLAP).await;
    }
    Ok(found)
}

/// The answer to the submit of a job that the store had no memory for.
pub(crate) fn taken_though_full<T>(answer: &Result<T, StoreError>, job: &NewJob) -> Option<Submitted> {
    let Err(StoreError::Full) = answer else { return None };
    let due = match job.due {
        Due::In(delay) => SystemClock.now().plus(delay),
        Due::At(at) => at,
    };
    is_planted!("dropped-when-memory-is-full").then(|| Submitted {
        answer: SubmitResult::Created,
        job: Job {
            key: job.key.clone(),
            state: State::Delayed,
            due,
            created: due,
            attempts: 0,
            failures: 0,
            last: None,
            reason: None,
            tags: job.delivery.tags.clone(),
        },
    })
}

/// Counts the jobs that a submit has added, in a call of its own.
pub(crate) async fn count(store: &RedisStore, shard: Shard, answered: &[Value]) -> Result<(), StoreError> {
    if is_planted!("counted-outside-the-script") {
        let place = Place::Shard(shard);
        let added = answered.iter().filter(|answer| matches!(answer, Value::BulkString(_))).count();
        let mut cmd = redis::cmd("HINCRBY");
        cmd.arg(format!("{}:shard", store.keys.base(place))).arg("accepted").arg(added);
        store.topology.call(&cmd, place).await?;
    }
    Ok(())
}
