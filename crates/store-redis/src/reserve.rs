//! The reserve edge: what is asked for, and how leases are made of the records that come
//! back. Large payloads are read after the script, since it would take too long with them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use redis::{Cmd, Value};
use ringback_core::clock::millis_up;
use ringback_core::contract::{
    Lease, LeaseGrant, Receipt, Reserve, Reserved, Shard, StoreClock, StoreError, payload,
};
use ringback_core::job::{DEFAULT_TIMEOUT, Delivery, Locator};
use ringback_core::lane::LaneId;
use ringback_core::limits::MAX_LEASE_STRETCH;
use ringback_core::state::State;
use tokio::time::Instant;

use super::RedisStore;
use super::layout::{self, Head, Tail};
use super::script::{self, reply};

/// One reserve stops taking jobs once they are so many bytes, large payloads with them.
pub(crate) const RESERVE_BYTES: usize = 1024 * 1024;

/// A job as the script answers it.
struct Found {
    locator: Bytes,
    lane: Arc<str>,
    run: Bytes,
    record: Bytes,
}

/// What is asked for, as reserve.lua takes it.
pub(crate) struct Order<'a> {
    ask: &'a Reserve<'a>,
    rooms: Vec<(LaneId, usize)>,
}

impl<'a> Order<'a> {
    pub(crate) fn of(ask: &'a Reserve<'a>) -> Self {
        Self { ask, rooms: ask.lane_limits.iter().map(|(lane, room)| (LaneId::of(lane), *room)).collect() }
    }

    pub(crate) fn push(&self, cmd: &mut Cmd) {
        let Reserve { caller, sequence, limit, lane_limit, bits, margin, .. } = self.ask;
        cmd.arg(caller).arg(&sequence.to_be_bytes()).arg(limit).arg(lane_limit).arg(bits);
        cmd.arg(millis_up(*margin)).arg(millis_up(DEFAULT_TIMEOUT)).arg(millis_up(MAX_LEASE_STRETCH));
        cmd.arg(RESERVE_BYTES);
        for (lane, room) in &self.rooms {
            cmd.arg(&lane.0).arg(room);
        }
    }

    /// How many arguments it makes.
    pub(crate) fn len(&self) -> usize {
        9 + 2 * self.rooms.len()
    }
}

/// What the script says in one number: that more can be taken, and that the shard is watched.
const MORE: i64 = 1;
const WATCHED: i64 = 2;

impl RedisStore {
    pub async fn reserve(&self, shard: Shard, ask: &Reserve<'_>) -> Result<Reserved, StoreError> {
        let (asked, order) = (Instant::now(), Order::of(ask));
        let answer = self.run(&script::RESERVE, shard, |cmd| order.push(cmd));
        self.reserved(shard, answer.await?, asked).await
    }

    /// Leases from a script's answer.
    pub(crate) async fn reserved(
        &self,
        shard: Shard,
        answer: Value,
        asked: Instant,
    ) -> Result<Reserved, StoreError> {
        let mut parts = reply::list(answer)?.into_iter();
        let (Some(now), Some(more), Some(passed)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(StoreError::Unreadable("a reserve's answer"));
        };
        let clock = StoreClock { shown_us: reply::number(&now)?, asked };
        let mut jobs = Vec::new();
        for group in parts {
            let mut group = reply::list(group)?.into_iter();
            let (Some(lane), Some(run)) = (group.next(), group.next()) else {
                return Err(StoreError::Unreadable("a reserve's answer"));
            };
            let (lane, run) = (Arc::<str>::from(reply::text(lane)?), reply::bytes(run)?);
            while let (Some(locator), Some(record)) = (group.next(), group.next()) {
                let (locator, record) = (reply::bytes(locator)?, reply::bytes(record)?);
                jobs.push(Found { locator, lane: Arc::clone(&lane), run: run.clone(), record });
            }
        }
        // All count that were given: one that cannot be read is not settled either.
        let mut batches: HashMap<u64, Arc<AtomicUsize>> = HashMap::new();
        for found in &jobs {
            let number = layout::lease_number(&found.run).ok_or(StoreError::Unreadable("a run"))?;
            batches.entry(number).or_default().fetch_add(1, Ordering::Relaxed);
        }
        // All at once, so that many large payloads wait no longer than one.
        let read = jobs.into_iter().map(async |found| {
            let lease = self.lease(shard, found, clock).await;
            // The rest is not lost with one: its lease runs out and it is recovered.
            lease.unwrap_or_else(|error| {
                tracing::error!(shard = shard.0, %error, "a reserved job cannot be read");
                None
            })
        });
        let mut leases: Vec<Lease> = join_all(read).await.into_iter().flatten().collect();
        let more = reply::int(&more)?;
        for lease in &mut leases {
            lease.grant_mut().is_watched = more & WATCHED != 0;
            lease.grant_mut().hint.unsettled =
                Arc::clone(batches.entry(lease.grant().receipt.number).or_default());
        }
        let passed = reply::list(passed)?.into_iter().map(reply::text).collect::<Result<_, _>>()?;
        Ok(Reserved { leases, more: more & MORE != 0, skipped: passed })
    }

    /// A lease from its head and record. `None` when its large payload has gone meanwhile: then the
    /// job has ended, by a late success.
    async fn lease(
        &self,
        shard: Shard,
        found: Found,
        clock: StoreClock,
    ) -> Result<Option<Lease>, StoreError> {
        let locator = found.locator.as_ref().try_into();
        let locator = Locator(locator.map_err(|_| StoreError::Unreadable("a locator"))?);
        let head = Head::parse(State::Reserved, found.run, &found.record)?;
        let tail = Tail::parse(&found.lane, found.record)?;
        let key = tail.key.clone();
        let Some(delivery) = self.delivery(shard, locator, &head, tail).await? else { return Ok(None) };
        let left = head.deadline.as_millis().saturating_mul(1000).saturating_sub(clock.shown_us);
        let grant = LeaseGrant {
            shard,
            locator,
            receipt: Receipt { number: head.lease, bits: head.bits },
            deadline: clock.asked + Duration::from_micros(left),
            clock,
            hint: head.settle_hint(Arc::default()),
            is_watched: false,
        };
        Ok(Some(Lease::new(grant, key, delivery, head.due, head.created, head.attempts, head.failures)))
    }

    /// What a job brought along. `None` when its large payload has gone meanwhile, and the job
    /// with it.
    pub(crate) async fn delivery(
        &self,
        shard: Shard,
        locator: Locator,
        head: &Head,
        tail: Tail,
    ) -> Result<Option<Delivery>, StoreError> {
        let packed = if head.is_external() {
            let key = self.keys.external(shard, locator);
            match self.topology.call(redis::cmd("GET").arg(key)).await? {
                Value::Nil => return Ok(None),
                value => reply::bytes(value)?,
            }
        } else {
            tail.payload
        };
        let delivery = payload::unpack(&packed, tail.origin, head.timeout());
        delivery.map(Some).ok_or(StoreError::Unreadable("a job's payload"))
    }
}
