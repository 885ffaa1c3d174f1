//! The forecast: how many delayed jobs come due when. Near due times are counted lane by lane, far ones list by list,
//! both a part at a time. Of large parts a sample is read.

use std::ops::Range;

use bytes::Bytes;
use ringback_core::job::TenantScope;
use ringback_core::store_types::{Forecast, ForecastPart, ForecastSlots, LaneSpan, Shard, StoreError};

use super::stats::{behind, lanes};
use crate::redis_store::RedisStore;
use crate::script;

/// How many members of the index one call reads.
const NEAR_STEP: usize = 200;
/// The most due times of a lane that are read, and the most once [`MANY`] were read.
const NEAR_READ: u64 = 256;
const NEAR_READ_OF_MANY: u64 = 8;
/// After how many due times fewer of each lane are read.
const MANY: u64 = 6_000;
/// About how many due times of all lists of a shard are read, for a forecast of all jobs and for one of some; and the
/// fewest and the most of each list.
const FAR_READ: u64 = 12_000;
const FAR_READ_FOR_SOME: u64 = 25_000;
const FAR_READ_EACH: (u64, u64) = (16, 512);
/// The time of a list, in ms.
const LIST: u64 = 600_000;

/// A part of which a sample was read: size, how many were read, its first and its last slot, and the counts by slot.
type Sampled = (u64, u64, i64, i64, Vec<i64>);

impl RedisStore {
    /// Returns how many jobs of these lanes in a shard come due in each slot, how many are ready or due already, and how
    /// many outcomes the last minutes had.
    pub async fn forecast(
        &self,
        shard: Shard,
        spans: &[LaneSpan],
        slots: &ForecastSlots,
    ) -> Result<Forecast, StoreError> {
        let mut forecast = Forecast::new(slots.count);
        for span in spans {
            self.add_near(shard, span, slots, &mut forecast).await?;
        }
        self.add_far(shard, spans, slots, &mut forecast).await?;
        Ok(forecast)
    }

    async fn add_near(
        &self,
        shard: Shard,
        span: &LaneSpan,
        slots: &ForecastSlots,
        forecast: &mut Forecast,
    ) -> Result<(), StoreError> {
        let ((mut from, till), mut n_read) = (lanes(span), 0);
        loop {
            let is_of_many = n_read >= MANY;
            let most = if is_of_many { NEAR_READ_OF_MANY } else { NEAR_READ };
            let of_slots = (slots.first, slots.length, slots.count);
            let args = (&from, &till, NEAR_STEP, of_slots, most, u8::from(is_of_many));
            let (last, ready, counted, parts): (Bytes, u64, Vec<i64>, Vec<Sampled>) =
                self.call(&script::FORECAST_NEAR, shard).arg(args).run().await?;
            forecast.ready += ready;
            n_read += add(forecast, &counted, &parts);
            if last.is_empty() {
                return Ok(());
            }
            from = behind(&last);
        }
    }

    async fn add_far(
        &self,
        shard: Shard,
        spans: &[LaneSpan],
        slots: &ForecastSlots,
        forecast: &mut Forecast,
    ) -> Result<(), StoreError> {
        let lists = slots.length * slots.count as u64 / LIST + 1;
        let (mut tenant, mut topics) = (String::new(), Vec::new());
        for span in spans {
            match span {
                LaneSpan::Topic(topic) => topics.push(topic.as_str()),
                LaneSpan::Of(TenantScope::All) => {}
                LaneSpan::Of(TenantScope::One(None)) => "~".clone_into(&mut tenant),
                LaneSpan::Of(TenantScope::One(Some(name))) => tenant = format!("~{}", name.as_str()),
            }
        }
        let read = if tenant.is_empty() && topics.is_empty() { FAR_READ } else { FAR_READ_FOR_SOME };
        let most = (read / lists).clamp(FAR_READ_EACH.0, FAR_READ_EACH.1);
        let mut from = "-inf".to_owned();
        while !from.is_empty() {
            let args = (&from, slots.first, slots.length, slots.count, most, &tenant, &topics);
            let (next, counted, parts, minutes): (String, Vec<i64>, Vec<Sampled>, Vec<u64>) =
                self.call(&script::FORECAST_FAR, shard).arg(args).run().await?;
            add(forecast, &counted, &parts);
            forecast.delivered.extend(minutes.as_chunks().0.iter().map(|&[minute, n]| (minute, n)));
            from = next;
        }
        Ok(())
    }
}

/// Adds the counts and samples of a call to the forecast, and returns how many entries were read for them.
fn add(forecast: &mut Forecast, counted: &[i64], parts: &[Sampled]) -> u64 {
    let mut whole = part(0..0, counted, forecast);
    whole.size = whole.found.values().map(|(jobs, retries)| jobs + retries).sum();
    whole.read = whole.size;
    forecast.add(&whole);
    let mut n_read = whole.read;
    for (size, read, from, to, found) in parts {
        let index = |slot: i64| usize::try_from(slot).unwrap_or(0);
        let mut sampled = part(index(*from)..index(*to + 1), found, forecast);
        (sampled.size, sampled.read) = (*size, *read);
        forecast.add(&sampled);
        n_read += read;
    }
    n_read
}

/// Reads the counts of slots. Adds jobs that are due already to the ready ones of the forecast.
fn part(slots: Range<usize>, found: &[i64], forecast: &mut Forecast) -> ForecastPart {
    let mut part = ForecastPart { slots, ..ForecastPart::default() };
    for &[slot, jobs, retries] in found.as_chunks().0 {
        let n = |n: i64| u64::try_from(n).unwrap_or(0);
        match usize::try_from(slot) {
            Ok(slot) => drop(part.found.insert(slot, (n(jobs), n(retries)))),
            Err(_) => forecast.ready += n(jobs) + n(retries),
        }
    }
    part
}
