//! Pages of dead jobs of a topic, in the order of their death: as jobs of all shards, or as cursors of one.

use bytes::Bytes;
use futures_util::future::try_join_all;
use redis::{FromRedisValue, Value};
use ringback_core::clock::Timestamp;
use ringback_core::job::Job;
use ringback_core::state::State;
use ringback_core::store_types::{DeadCursor, DeadFilter, DeadPage, DeadShardPage, Shard, StoreError};

use crate::record::{FixedFields, OptionalFields, number};
use crate::redis_store::RedisStore;
use crate::{reply, script};

/// How much a call reads, counted in entries of the index: a few milliseconds of a script.
const WORK: usize = 2000;
/// The latest time in six bytes.
const FOREVER: u64 = (1 << 48) - 1;

const UNREADABLE: StoreError = StoreError::Unreadable("a page of dead jobs");

impl RedisStore {
    /// Returns a page of each shard. Logs and skips jobs that cannot be read.
    pub async fn dead(
        &self,
        filter: &DeadFilter,
        from: Option<DeadCursor>,
        limit: usize,
    ) -> Result<Vec<DeadShardPage<Job>>, StoreError> {
        try_join_all(self.options.all_shards().map(|shard| self.dead_of(shard, filter, from, limit))).await
    }

    async fn dead_of(
        &self,
        shard: Shard,
        filter: &DeadFilter,
        from: Option<DeadCursor>,
        limit: usize,
    ) -> Result<DeadShardPage<Job>, StoreError> {
        let page = self.read_dead::<Value>(shard, filter, from, limit, true).await?;
        let mut items = Vec::with_capacity(page.items.len());
        for answer in page.items {
            match dead_job(answer) {
                Ok(found) => items.push(found),
                Err(error) => {
                    tracing::error!(shard = shard.0, %error, "a dead job cannot be read and is skipped");
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
        let page = self.read_dead::<Bytes>(shard, filter, from, limit, false).await?;
        let items = page.items.into_iter().map(|raw| cursor(&raw));
        Ok(DeadPage { items: items.collect::<Result<_, _>>()?, next: page.next, now: page.now })
    }

    async fn read_dead<T: FromRedisValue>(
        &self,
        shard: Shard,
        filter: &DeadFilter,
        from: Option<DeadCursor>,
        limit: usize,
        whole: bool,
    ) -> Result<DeadPage<T>, StoreError> {
        let begin = filter.after.map_or(0, Timestamp::as_millis).min(FOREVER);
        // A cursor before the begin of the time range is ignored.
        let from = from.filter(|from| from.at >= begin);
        let before = filter.before.map_or(FOREVER, Timestamp::as_millis).min(FOREVER);
        let place = from.as_ref().map_or((begin, &[][..]), |from| (from.at, &from.tie));
        let reason = filter.reason.as_deref().unwrap_or_default();
        let args = (filter.topic.as_str(), reason, place, before, limit, WORK, whole);
        let (now_us, reached, items): (u64, Bytes, Vec<T>) =
            self.call(&script::DEAD, shard).arg(args).run().await?;
        let next = if reached.is_empty() { None } else { Some(cursor(&reached)?) };
        Ok(DeadPage { items, next, now: Timestamp::from_millis(now_us / 1000) })
    }
}

fn cursor(raw: &[u8]) -> Result<DeadCursor, StoreError> {
    let (at, tie) = raw.split_at_checked(6).ok_or(UNREADABLE)?;
    Ok(DeadCursor { at: number(at), tie: tie.try_into().map_err(|_| UNREADABLE)? })
}

fn dead_job(answer: Value) -> Result<(DeadCursor, Job), StoreError> {
    let (name, job_state, lane, record): (Bytes, Bytes, String, Bytes) = reply::read(answer, "a dead job")?;
    let head = FixedFields::parse(State::Dead, job_state, &record)?;
    let tail = OptionalFields::parse(&lane, record)?;
    Ok((cursor(&name)?, head.into_job(tail.key, tail.tags)))
}
