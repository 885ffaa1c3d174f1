//! Dead letters on Redis: reading on through a shard's sorted set of them, and purging many.

use bytes::Bytes;
use redis::{Cmd, Value};
use ringback_core::clock::Timestamp;
use ringback_core::contract::{DeadCursor, DeadFilter, DeadPage, DeadShardPage, Shard, StoreError};
use ringback_core::job::Job;
use ringback_core::state::State;

use super::RedisStore;
use super::layout::{Head, Tail, six};
use super::script::{self, reply};

/// How much a call looks at, counted in entries of the index: a few milliseconds of a script.
const WORK: usize = 2000;
/// Times are kept in six bytes.
const FOREVER: u64 = (1 << 48) - 1;

const UNREADABLE: StoreError = StoreError::Unreadable("a page of dead jobs");

impl RedisStore {
    pub async fn dead(
        &self,
        shard: Shard,
        filter: &DeadFilter,
        from: Option<DeadCursor>,
        limit: usize,
    ) -> Result<DeadShardPage<Job>, StoreError> {
        let page = self.read_dead(shard, filter, from, limit, "1").await?;
        let mut items = Vec::with_capacity(page.items.len());
        for answer in page.items {
            match dead_job(answer) {
                Ok(found) => items.push(found),
                Err(error) => {
                    tracing::error!(shard = shard.0, %error, "a dead job cannot be read and is passed over");
                }
            }
        }
        Ok(DeadPage { items, next: page.next, now: page.now })
    }

    pub async fn dead_cursors(
        &self,
        shard: Shard,
        filter: &DeadFilter,
        from: Option<DeadCursor>,
        limit: usize,
    ) -> Result<DeadPage<DeadCursor>, StoreError> {
        let page = self.read_dead(shard, filter, from, limit, "0").await?;
        let items = page.items.into_iter().map(|value| place(&reply::bytes(value)?));
        Ok(DeadPage { items: items.collect::<Result<_, _>>()?, next: page.next, now: page.now })
    }

    async fn read_dead(
        &self,
        shard: Shard,
        filter: &DeadFilter,
        from: Option<DeadCursor>,
        limit: usize,
        whole: &str,
    ) -> Result<DeadPage<Value>, StoreError> {
        let begin = filter.after.map_or(0, Timestamp::as_millis).min(FOREVER);
        // A place before the beginning is none.
        let from = from.filter(|from| from.at >= begin);
        let answer = self.run(&script::DEAD, shard, |cmd| {
            cmd.arg(filter.topic.as_str()).arg(filter.reason.as_deref().unwrap_or_default());
            cmd.arg(from.map_or(begin, |from| from.at));
            cmd.arg(from.as_ref().map_or(&[][..], |from| &from.tie));
            cmd.arg(filter.before.map_or(FOREVER, Timestamp::as_millis).min(FOREVER));
            cmd.arg(limit).arg(WORK).arg(whole);
        });
        let mut parts = reply::list(answer.await?)?.into_iter();
        let (now, reached) = (parts.next().ok_or(UNREADABLE)?, parts.next().ok_or(UNREADABLE)?);
        let reached = reply::bytes(reached)?;
        let next = if reached.is_empty() { None } else { Some(place(&reached)?) };
        let now = Timestamp::from_millis(reply::number::<u64>(&now)? / 1000);
        Ok(DeadPage { items: parts.collect(), next, now })
    }

    pub async fn purge_many(&self, shard: Shard, places: &[DeadCursor]) -> Result<u64, StoreError> {
        let answer = self.run(&script::PURGE_MANY, shard, |cmd| push_places(cmd, places));
        reply::number(&answer.await?)
    }
}

/// As the scripts take them: time and locator.
pub(crate) fn push_places(cmd: &mut Cmd, places: &[DeadCursor]) {
    for place in places {
        cmd.arg([&six(place.at)[..], &place.tie].concat());
    }
}

fn place(raw: &[u8]) -> Result<DeadCursor, StoreError> {
    let (at, tie) = raw.split_at_checked(6).ok_or(UNREADABLE)?;
    let at = at.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    Ok(DeadCursor { at, tie: tie.try_into().map_err(|_| UNREADABLE)? })
}

fn dead_job(answer: Value) -> Result<(DeadCursor, Job), StoreError> {
    let parts: Result<[Value; 4], _> = reply::list(answer)?.try_into();
    let [name, run, lane, record] = parts.map_err(|_| UNREADABLE)?;
    let record: Bytes = reply::bytes(record)?;
    let head = Head::parse(State::Dead, reply::bytes(run)?, &record)?;
    let tail = Tail::parse(&reply::text(lane)?, record)?;
    Ok((place(&reply::bytes(name)?)?, head.into_job(tail.key)))
}
