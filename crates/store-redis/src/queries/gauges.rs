//! Gauges of a shard and of topics in it: counts from the ledger and from the rows of lanes, the oldest ready job from
//! the heads of ready queues, and the archive outbox. A shard takes several bounded calls, one after the other.

use std::time::Duration;

use futures_util::future::join_all;
use redis::Value;
use ringback_core::job::Topic;
use ringback_core::state::State;
use ringback_core::store_types::{
    ArchiveGauge, Epoch, GaugesByShard, JobGauge, MAX_LANES_SEARCHED, Shard, ShardGauges, StateCounts,
    StoreError,
};
use strum::VariantArray as _;

use super::stats::{begin, behind};
use crate::redis_store::RedisStore;
use crate::{reply, script};

/// How many lanes one call counts and reads ready jobs of.
const LOOKED_INTO: usize = 512;
/// How many topics and lanes one call counts without reading jobs.
const COUNTED: usize = 1000;

const WHAT: &str = "gauges";

impl RedisStore {
    pub async fn gauges(
        &self,
        held: &[(Shard, Epoch)],
        topics: &[Topic],
    ) -> Result<GaugesByShard, StoreError> {
        let read =
            held.iter().map(async |(shard, epoch)| (*shard, self.gauges_of(*shard, epoch, topics).await));
        Ok(join_all(read).await)
    }

    /// Returns the gauges of a shard; `None` if another carrier has claimed it.
    async fn gauges_of(
        &self,
        shard: Shard,
        epoch: &Epoch,
        topics: &[Topic],
    ) -> Result<Option<ShardGauges>, StoreError> {
        let Some(gauges) = self.shard_gauges(shard, epoch).await? else { return Ok(None) };
        let topics = self.topic_gauges(shard, epoch, topics).await?;
        Ok(topics.map(|topics| ShardGauges { topics, ..gauges }))
    }

    /// Returns the gauges of all jobs of a shard, without those of topics; `None` if another carrier has claimed it.
    async fn shard_gauges(&self, shard: Shard, epoch: &Epoch) -> Result<Option<ShardGauges>, StoreError> {
        let (mut first, mut oldest, mut skipped): (Option<StateCounts>, i64, usize) = (None, -1, 0);
        loop {
            let args = (&epoch.0, skipped, LOOKED_INTO);
            let counts: Vec<i64> = self.call(&script::GAUGES, shard).arg(args).run().await?;
            let [states @ .., missing, late, looked, pending, bytes, dropped, ended, full, evicted_early] =
                counts.as_slice()
            else {
                return Ok(None);
            };
            oldest = oldest.max(*late);
            // The counts of the first call are used: later calls only search more lanes for the oldest job.
            let states = first.get_or_insert(state_counts(states)?);
            match usize::try_from(*looked) {
                Ok(looked) if skipped + looked < MAX_LANES_SEARCHED => skipped += looked.max(1),
                Ok(_) | Err(_) => {
                    let number = |n: i64| u64::try_from(n).unwrap_or(0);
                    let archive = ArchiveGauge {
                        pending: number(*pending),
                        bytes: number(*bytes),
                        dropped: number(*dropped),
                        oldest: u64::try_from(*ended).ok().map(Duration::from_millis),
                        is_full: *full == 1,
                    };
                    return Ok(Some(ShardGauges {
                        all: gauge(states.clone(), oldest),
                        missing: number(*missing),
                        evicted_early: number(*evicted_early),
                        archive,
                        topics: Vec::new(),
                    }));
                }
            }
        }
    }

    /// Returns the gauges of topics, in their order; `None` if another carrier has claimed the shard.
    async fn topic_gauges(
        &self,
        shard: Shard,
        epoch: &Epoch,
        topics: &[Topic],
    ) -> Result<Option<Vec<JobGauge>>, StoreError> {
        let mut sums = vec![(StateCounts::default(), -1_i64); topics.len()];
        let (mut next, mut looked) = (0, 0);
        let mut from = topics.first().map(begin).unwrap_or_default();
        while next < topics.len() {
            let into = looked < MAX_LANES_SEARCHED;
            let most = if into { LOOKED_INTO } else { COUNTED };
            looked += LOOKED_INTO;
            let names: Vec<&str> = topics[next..].iter().map(Topic::as_str).collect();
            let args = (&epoch.0, into, most, &from, names);
            let answer: Vec<Value> = self.call(&script::TOPIC_GAUGES, shard).arg(args).run().await?;
            if answer.is_empty() {
                return Ok(None);
            }
            let (last, parts): (Vec<u8>, Vec<Vec<i64>>) = reply::read(Value::Array(answer), WHAT)?;
            if parts.is_empty() {
                return Err(StoreError::Unreadable(WHAT));
            }
            for (part, sum) in parts.iter().zip(&mut sums[next..]) {
                let [states @ .., late] = part.as_slice() else { return Err(StoreError::Unreadable(WHAT)) };
                sum.0.add(&state_counts(states)?);
                sum.1 = sum.1.max(*late);
            }
            // The last topic may have more lanes.
            next += if last.is_empty() { parts.len() } else { parts.len() - 1 };
            from = behind(&last);
        }
        Ok(Some(sums.into_iter().map(|(states, late)| gauge(states, late)).collect()))
    }
}

/// Reads the counts of the states, in their order. A count below zero would be a bug of a script; it shows as zero.
fn state_counts(counts: &[i64]) -> Result<StateCounts, StoreError> {
    if counts.len() != State::VARIANTS.len() {
        return Err(StoreError::Unreadable(WHAT));
    }
    let mut states = StateCounts::default();
    for (state, n) in State::VARIANTS.iter().copied().zip(counts) {
        *states.of(state) = u64::try_from(*n).unwrap_or(0);
    }
    Ok(states)
}

/// Returns a gauge. `late` is for how long the oldest ready job that was found has been due, in ms; negative for none.
fn gauge(states: StateCounts, late: i64) -> JobGauge {
    JobGauge::new(states, u64::try_from(late).ok().map(Duration::from_millis))
}
