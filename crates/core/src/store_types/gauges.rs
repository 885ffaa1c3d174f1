//! Gauges of a shard and of some of its topics: how many jobs are in each state, how long the oldest ready job has been
//! due, and how full the archive outbox is. Read from counts and from the heads of queues, never from the jobs.

use std::time::Duration;

use super::error::StoreError;
use super::shard::Shard;
use super::stats::StateCounts;

/// The jobs of a shard, or those of one topic in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobGauge {
    /// Jobs by state. Purged and missing jobs are not counted here.
    pub states: StateCounts,
    /// How long the oldest ready job has been due; zero if none is ready. `None` if jobs are ready, but
    /// none was found among the first entries of the first
    /// [`MAX_LANES_SEARCHED`](super::MAX_LANES_SEARCHED) queues of the shard.
    pub oldest_ready: Option<Duration>,
}

impl JobGauge {
    /// The gauge of these counts. `oldest_ready` is `None` if no ready job was found; it becomes zero if none is ready.
    pub fn new(states: StateCounts, oldest_ready: Option<Duration>) -> Self {
        let without_any = (states.ready == 0).then_some(Duration::ZERO);
        Self { oldest_ready: oldest_ready.or(without_any), states }
    }

    /// The gauge without any jobs.
    pub fn empty() -> Self {
        Self::new(StateCounts::default(), None)
    }

    /// Adds the jobs of another shard. `oldest_ready` becomes `None` if that of either is.
    pub fn add(&mut self, other: &Self) {
        self.states.add(&other.states);
        self.oldest_ready = self.oldest_ready.zip(other.oldest_ready).map(|(one, other)| one.max(other));
    }
}

/// The archive outbox of a shard, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArchiveGauge {
    pub pending: u64,
    /// How many bytes they take.
    pub bytes: u64,
    /// How many were dropped since the installation began.
    pub dropped: u64,
    /// How long ago the job of the first entry ended; `None` without entries.
    pub oldest: Option<Duration>,
    /// Whether submits are refused because of it.
    pub is_full: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShardGauges {
    pub all: JobGauge,
    /// Its missing jobs, by its ledger.
    pub missing: u64,
    /// Tombstones that were evicted before they had been kept for as long as they should, by its ledger.
    pub evicted_early: u64,
    pub archive: ArchiveGauge,
    /// The jobs of the topics that were asked for, in their order. Done and cancelled jobs are counted
    /// since the topic became known, as in [`TopicCounts`](super::TopicCounts).
    pub topics: Vec<JobGauge>,
}

/// The gauges of each shard that was asked for; `None` for a shard that another carrier has claimed.
pub type GaugesByShard = Vec<(Shard, Result<Option<ShardGauges>, StoreError>)>;

#[cfg(test)]
mod tests {
    use super::*;

    fn gauge(ready: u64, oldest_ready: Option<u64>) -> JobGauge {
        let states = StateCounts { ready, ..StateCounts::default() };
        JobGauge { states, oldest_ready: oldest_ready.map(Duration::from_secs) }
    }

    #[test]
    fn an_age_is_unknown_only_while_jobs_are_ready() {
        let new = |ready, found| JobGauge::new(gauge(ready, None).states, found);
        assert_eq!(new(0, None), gauge(0, Some(0)));
        assert_eq!(new(1, None), gauge(1, None));
        assert_eq!(new(1, Some(Duration::from_secs(7))), gauge(1, Some(7)));
    }

    #[test]
    fn shards_add_up_and_the_oldest_job_of_all_counts() {
        let mut sum = JobGauge::empty();
        sum.add(&gauge(2, Some(7)));
        sum.add(&gauge(3, Some(4)));
        assert_eq!(sum, gauge(5, Some(7)));
    }

    #[test]
    fn an_age_that_is_unknown_in_one_shard_is_unknown_for_all() {
        let mut sum = gauge(1, Some(7));
        sum.add(&gauge(1, None));
        sum.add(&gauge(1, Some(9)));
        assert_eq!(sum, gauge(3, None));
    }
}
