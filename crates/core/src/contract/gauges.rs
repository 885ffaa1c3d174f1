//! Gauges: how many jobs a shard and some topics of it have in each state, and how long the oldest ready
//! job has been due. Read from counts and from the heads of ready queues, never from the jobs.

use std::time::Duration;

use super::error::StoreError;
use super::shard::Shard;
use super::stats::StateCounts;

/// How many entries of a ready queue are looked at for the first one that counts. More than
/// [`MAX_READY_SEARCHED`](super::MAX_READY_SEARCHED) are looked at only if none of those counts.
pub const MAX_HEAD_SEARCHED: usize = 100;

/// The jobs of a shard, or those of one topic in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobGauge {
    /// Jobs by state. Purged jobs are not counted here.
    pub states: StateCounts,
    /// How long the oldest ready job has been due; zero if none is ready. `None` if jobs are ready, but
    /// none was found among the first entries of the first
    /// [`MAX_LANES_SEARCHED`](super::MAX_LANES_SEARCHED) queues of the shard.
    pub oldest_ready: Option<Duration>,
}

impl JobGauge {
    /// Nothing: no jobs, and none is ready.
    pub fn empty() -> Self {
        Self { states: StateCounts::default(), oldest_ready: Some(Duration::ZERO) }
    }

    /// Adds the jobs of another shard.
    pub fn add(&mut self, other: &Self) {
        self.states.add(&other.states);
        self.oldest_ready = self.oldest_ready.zip(other.oldest_ready).map(|(one, other)| one.max(other));
    }
}

/// The gauges of one shard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShardGauges {
    /// All its jobs, by its ledger.
    pub all: JobGauge,
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
