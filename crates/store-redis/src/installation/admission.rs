//! Limits of destinations and topics: stores and reads them, marks them in shards, and gives places under them.

use std::time::Duration;

use bytes::Bytes;
use redis::Value;
use ringback_core::clock::millis_up;
use ringback_core::flow::{Bucket, Limits, Rate};
use ringback_core::store_types::{
    Admission, Admitted, LimitState, LimitTarget, MAX_LIMITS, MAX_LIMITS_OF_TENANT, MAX_RESUMED_LANES,
    PauseLimit, PlaceId, Shard, StoreError,
};

use crate::keys::KeySpace;
use crate::record::doubles;
use crate::redis_store::RedisStore;
use crate::reply::{self, take};
use crate::script;

const UNREADABLE: StoreError = StoreError::Unreadable("a limit");

impl RedisStore {
    /// Stores a limit, in place of another one of the same target; removes it if nothing is limited. If it would be one too
    /// many, changes nothing and returns which bound it would exceed.
    pub async fn put_limit(
        &self,
        of: &LimitTarget,
        limits: &Limits,
    ) -> Result<Option<PauseLimit>, StoreError> {
        let prefix = of.tenant_prefix().unwrap_or_default();
        let row = if limits.is_empty() { Vec::new() } else { doubles(settings(limits)) };
        let args = (of.name(), row, prefix, MAX_LIMITS, MAX_LIMITS_OF_TENANT);
        let call = self.call(&script::PUT_LIMIT, KeySpace::Installation).confirmed();
        match call.arg(args).run().await? {
            1 | -1 => Ok(None),
            0 => Ok(Some(PauseLimit::Installation)),
            2 => Ok(Some(PauseLimit::Tenant)),
            _ => Err(UNREADABLE),
        }
    }

    /// Marks in a shard that there is a limit, or none any more: then its lanes get their turns, a part at a time.
    pub async fn mark_limit(
        &self,
        shard: Shard,
        of: &LimitTarget,
        is_limited: bool,
    ) -> Result<(), StoreError> {
        if is_limited {
            let call = self.call(&script::MARK_LIMIT, shard).confirmed().arg(of.name());
            return call.run::<u8>().await.map(drop);
        }
        let mut last = Bytes::new();
        loop {
            let args = (of.name(), &*last, MAX_RESUMED_LANES);
            last = self.call(&script::UNMARK_LIMIT, shard).confirmed().arg(args).run().await?;
            if last.is_empty() {
                return Ok(());
            }
        }
    }

    /// Which callbacks are limited.
    pub async fn limit_names(&self) -> Result<Vec<LimitTarget>, StoreError> {
        let names: Vec<String> = self.call(&script::LIMIT_NAMES, KeySpace::Installation).run().await?;
        names.iter().map(|name| LimitTarget::from_name(name).ok_or(UNREADABLE)).collect()
    }

    /// Returns the limits of these targets, without those that do not exist.
    pub async fn limits(&self, of: &[LimitTarget]) -> Result<Vec<LimitState>, StoreError> {
        if of.is_empty() {
            return Ok(Vec::new());
        }
        let names: Vec<_> = of.iter().map(LimitTarget::name).collect();
        let mut rows: Vec<Value> =
            self.call(&script::LIMITS, KeySpace::Installation).arg(names).run().await?;
        let now = rows.pop().ok_or(UNREADABLE)?;
        let now = take::int(&now)? as f64;
        let found = of.iter().zip(rows).map(|(of, row)| limit_state(of, row, now));
        found.filter_map(Result::transpose).collect()
    }

    /// Takes places back, and gives those that are wanted and free: an answer for each lane that wants some.
    pub async fn admit(&self, admission: &Admission) -> Result<Vec<Admitted>, StoreError> {
        let Admission { wanted, ended, unused, held, lasts, ahead, lead } = admission;
        let numbers = [
            millis_up(*lasts) as f64,
            ahead.as_micros() as f64,
            lead.as_micros() as f64,
            ended.len() as f64,
            unused.len() as f64,
            held.len() as f64,
        ];
        let call = self.call(&script::ADMIT, KeySpace::Installation).with(|cmd| {
            cmd.arg(doubles(numbers));
            for (lane, place) in ended {
                cmd.arg(lane).arg(&place.0.to_be_bytes());
            }
            for (lane, first, n) in unused {
                cmd.arg(lane).arg([&first.0.to_be_bytes()[..], &n.to_be_bytes()].concat());
            }
            for (lane, place, time) in held {
                cmd.arg(lane)
                    .arg([&place.0.to_be_bytes()[..], &millis_up(*time).to_be_bytes()[2..]].concat());
            }
            for (lane, n) in wanted {
                cmd.arg(lane).arg(n);
            }
        });
        let answers: Vec<Vec<i64>> = call.run().await?;
        if answers.len() != wanted.len() {
            return Err(UNREADABLE);
        }
        answers.iter().map(|answer| admitted(answer).ok_or(UNREADABLE)).collect()
    }
}

/// The numbers of a row that say what is allowed.
fn settings(limits: &Limits) -> [f64; 5] {
    let (count, seconds) = limits.rate.map_or((0, 0), Rate::parts);
    let interval = limits.rate.map_or(0.0, Rate::interval_us);
    let numbers = [f64::from(count), seconds as f64, f64::from(limits.burst.unwrap_or(0))];
    let [count, seconds, burst] = numbers;
    [count, seconds, burst, f64::from(limits.in_flight.unwrap_or(0)), interval]
}

fn limit_state(of: &LimitTarget, row: Value, now: f64) -> Result<Option<LimitState>, StoreError> {
    let mut parts = take::list(row)?.into_iter();
    let (Some(row), Some(in_flight)) = (parts.next(), parts.next()) else { return Ok(None) };
    let row: Bytes = take::bytes(row)?;
    let numbers: Vec<f64> = row.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
    let &[count, seconds, burst, most, _, full_at, _] = numbers.as_slice() else { return Err(UNREADABLE) };
    let some = |number: f64| (number > 0.0).then_some(number as u32);
    let limits = Limits {
        rate: Rate::from_parts(count as u32, seconds as u64),
        burst: some(burst),
        in_flight: some(most),
    };
    let bucket = Bucket::full_at(full_at);
    let next_in = Duration::from_micros((bucket.earliest(&limits, now) - now) as u64);
    let in_flight = reply::read(in_flight, "the callbacks in flight under a limit")?;
    Ok(Some(LimitState { of: of.clone(), limits, in_flight, next_in }))
}

fn admitted(answer: &[i64]) -> Option<Admitted> {
    let micros = |us: &i64| u64::try_from(*us).ok().map(Duration::from_micros);
    match answer {
        [0] => Some(Admitted::Unlimited),
        [1, wait] => Some(Admitted::Wait(micros(wait))),
        [2, first, begin_in @ ..] => Some(Admitted::Granted {
            first: PlaceId(u64::try_from(*first).ok()?),
            begin_in: begin_in.iter().map(micros).collect::<Option<_>>()?,
        }),
        _ => None,
    }
}
