//! Gauges of shards and of topics in them, from one snapshot: jobs by state, the oldest ready job that was found, and
//! the archive outbox.

use std::time::Duration;

use ringback_core::job::Topic;
use ringback_core::store_types::{
    ArchiveGauge, Epoch, GaugesByShard, JobGauge, MAX_LANES_SEARCHED, Shard, ShardGauges, StateCounts,
    StoreError, TopicCounts,
};

use super::counts::View;
use crate::EmbeddedStore;
use crate::error::Result;
use crate::tables::ShardRow;

impl EmbeddedStore {
    /// Returns the gauges of shards and of `topics` in each; `None` for a shard that another carrier has claimed.
    pub async fn gauges(
        &self,
        held: &[(Shard, Epoch)],
        topics: &[Topic],
    ) -> Result<GaugesByShard, StoreError> {
        let (snapshot, now) = self.dated_snapshot().await?;
        let (held, topics) = (held.to_vec(), topics.to_vec());
        self.read(snapshot, move |tables| {
            let of_shard = |(shard, epoch): (Shard, Epoch)| {
                let gauges = View { tables, shard: shard.0, now }.gauges(&epoch, &topics)?;
                Ok((shard, Ok(gauges)))
            };
            held.into_iter().map(of_shard).collect()
        })
        .await
    }
}

impl View<'_> {
    fn gauges(&self, epoch: &Epoch, topics: &[Topic]) -> Result<Option<ShardGauges>> {
        let row = self.tables.shards.get(self.shard)?;
        if row.is_fenced(epoch) {
            return Ok(None);
        }
        let states = StateCounts { purged: 0, missing: 0, ..row.ledger.counts() };
        let oldest = if states.ready > 0 { self.oldest_of_all()? } else { None };
        let mut lanes_left = MAX_LANES_SEARCHED;
        let topic = |topic: &Topic| {
            let (counts, oldest) = self.counts(topic.as_str(), &mut lanes_left)?;
            Ok(self.gauge(states_of(&counts), oldest))
        };
        let topics = topics.iter().map(topic).collect::<Result<_>>()?;
        let (all, missing, archive) = (self.gauge(states, oldest), row.ledger.missing(), self.archive(&row)?);
        Ok(Some(ShardGauges { all, missing, evicted_early: row.ledger.evicted_early, archive, topics }))
    }

    fn archive(&self, row: &ShardRow) -> Result<ArchiveGauge> {
        let Some(archive) = row.archive else { return Ok(ArchiveGauge::default()) };
        let oldest = self.tables.archive.oldest(self.shard, archive.first)?;
        Ok(ArchiveGauge {
            pending: archive.count,
            bytes: archive.bytes,
            dropped: archive.dropped,
            oldest: oldest.map(|at| Duration::from_millis(self.now.saturating_sub(at))),
            is_full: archive.is_full(),
        })
    }

    /// Returns the earliest due time, in ms, of the first ready jobs of the first [`MAX_LANES_SEARCHED`] lanes.
    fn oldest_of_all(&self) -> Result<Option<u64>> {
        let mut oldest = None;
        for lane in self.tables.ready.all_lanes(self.shard, MAX_LANES_SEARCHED)? {
            oldest = [oldest, self.oldest_ready(&lane)?].into_iter().flatten().min();
        }
        Ok(oldest)
    }

    /// Returns a gauge. `oldest` is the due time, in ms, of the oldest ready job that was found.
    fn gauge(&self, states: StateCounts, oldest: Option<u64>) -> JobGauge {
        JobGauge::new(states, oldest.map(|due| Duration::from_millis(self.now.saturating_sub(due))))
    }
}

fn states_of(counts: &TopicCounts) -> StateCounts {
    let &TopicCounts { delayed, ready, reserved, done, dead, cancelled, .. } = counts;
    StateCounts { delayed, ready, reserved, done, dead, cancelled, ..StateCounts::default() }
}
