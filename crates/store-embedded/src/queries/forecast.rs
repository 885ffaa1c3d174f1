//! The forecast: how many delayed jobs come due when. Reads the due times of each topic from snapshots, a part at a
//! time, and the records of a sample of the jobs, which say whether a job has failed before.

use std::collections::{BTreeMap, BinaryHeap};

use ringback_core::state::State;
use ringback_core::store_types::{Forecast, ForecastPart, ForecastSlots, LaneSpan, Shard, StoreError};

use super::counts::View;
use crate::EmbeddedStore;
use crate::error::Result;

/// How many due times one part reads.
const STEP: usize = 100_000;
/// The most records of a topic and a slot that one part reads.
const MAX_RECORDS: usize = 400;
/// How many topics are listed at a time.
const TOPICS: usize = 1000;

impl EmbeddedStore {
    /// Returns how many jobs of these topics in a shard come due in each slot, how many are ready or due already, and
    /// how many outcomes the last minutes had.
    pub async fn forecast(
        &self,
        shard: Shard,
        spans: &[LaneSpan],
        slots: &ForecastSlots,
    ) -> Result<Forecast, StoreError> {
        let mut forecast = Forecast::new(slots.count);
        for span in spans {
            let mut from = None;
            loop {
                let topics = self.topics_of(shard, span, from.as_deref()).await?;
                for topic in &topics {
                    self.add_topic(shard, topic, *slots, &mut forecast).await?;
                }
                match topics.last() {
                    Some(last) if topics.len() == TOPICS => from = Some(format!("{last} ")),
                    _ => break,
                }
            }
        }
        let count = |txn: &mut crate::txn::Txn<'_>| txn.tables.minutes.counts(txn.shard(), txn.now());
        forecast.delivered = self.call(shard, 0, count).await?;
        Ok(forecast)
    }

    /// Returns the first [`TOPICS`] topics of a span, from a name on. A span of one topic is that topic.
    async fn topics_of(
        &self,
        shard: Shard,
        span: &LaneSpan,
        from: Option<&str>,
    ) -> Result<Vec<String>, StoreError> {
        let (least, below) = match span {
            LaneSpan::Topic(topic) => return Ok(vec![topic.as_str().to_owned()]),
            LaneSpan::Of(scope) => scope.bounds(),
        };
        let from = from.map_or(least, str::to_owned);
        let snapshot = self.snapshot().await?;
        self.read(snapshot, move |tables| {
            let mut topics = tables.due.topics(shard.0, &from, TOPICS)?;
            topics.retain(|topic| below.as_ref().is_none_or(|below| topic < below));
            Ok(topics)
        })
        .await
    }

    async fn add_topic(
        &self,
        shard: Shard,
        topic: &str,
        slots: ForecastSlots,
        forecast: &mut Forecast,
    ) -> Result<(), StoreError> {
        let mut from = (0, 0);
        loop {
            let (snapshot, now) = self.dated_snapshot().await?;
            let (topic, is_first) = (topic.to_owned(), from == (0, 0));
            let (part, next) = self
                .read(snapshot, move |tables| {
                    let view = View { tables, shard: shard.0, now };
                    let mut part = view.forecast(&topic, from, &slots)?;
                    if is_first {
                        part.0.ready += view.ready(&topic)?;
                    }
                    Ok(part)
                })
                .await?;
            forecast.merge(&part);
            let Some(next) = next else { return Ok(()) };
            from = next;
        }
    }
}

impl View<'_> {
    /// Counts the first [`STEP`] delayed jobs of a topic from a due time and number on. Also returns where to go on;
    /// `None` if there are no more.
    fn forecast(
        &self,
        topic: &str,
        from: (u64, u64),
        slots: &ForecastSlots,
    ) -> Result<(Forecast, Option<(u64, u64)>)> {
        let found = self.tables.due.between(self.shard, topic, from, slots.end(), STEP)?;
        let (mut forecast, mut by_slot) = (Forecast::new(slots.count), BTreeMap::<_, Vec<u64>>::new());
        for &(at, number) in &found {
            match slots.slot_of(at).filter(|_| at > self.now) {
                Some(slot) => by_slot.entry(slot).or_default().push(number),
                None => forecast.ready += 1,
            }
        }
        for (slot, numbers) in by_slot {
            let size = numbers.len() as u64;
            let sample = sample(numbers);
            let mut part =
                ForecastPart { size, read: sample.len() as u64, slots: slot..slot + 1, ..Default::default() };
            let (jobs, retries) = part.found.entry(slot).or_default();
            for number in sample {
                let has_failed = self.tables.records.get(number)?.is_some_and(|record| record.failures > 0);
                *if has_failed { &mut *retries } else { &mut *jobs } += 1;
            }
            forecast.add(&part);
        }
        let next = found.last().filter(|_| found.len() == STEP).map(|(at, number)| (*at, number + 1));
        Ok((forecast, next))
    }

    /// How many jobs of a topic are ready.
    fn ready(&self, topic: &str) -> Result<u64> {
        let mut sum = 0;
        for lane in self.tables.counts.stored_lanes(self.shard, topic)? {
            sum += u64::try_from(lane?.1.of(State::Ready)).unwrap_or(0);
        }
        Ok(sum)
    }
}

/// Returns the [`MAX_RECORDS`] numbers with the smallest hashes, or all if there are no more than that.
fn sample(numbers: Vec<u64>) -> Vec<u64> {
    if numbers.len() <= MAX_RECORDS {
        return numbers;
    }
    let mut smallest = BinaryHeap::with_capacity(MAX_RECORDS + 1);
    for number in numbers {
        smallest.push((hash(number), number));
        if smallest.len() > MAX_RECORDS {
            smallest.pop();
        }
    }
    smallest.into_iter().map(|(_, number)| number).collect()
}

/// The step of `SplitMix64`.
const fn hash(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
