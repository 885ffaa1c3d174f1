//! Turns the gauges of shards into metrics.

use ringback_core::job::Topic;
use ringback_core::state::State;
use ringback_core::store_types::{ArchiveGauge, JobGauge, ShardGauges, StateCounts};
use ringback_service::GaugeValues;
use ringback_service::telemetry::Metric;
use strum::VariantArray as _;

use crate::metrics::{
    ARCHIVE_BYTES, ARCHIVE_DROPPED, ARCHIVE_FULL, ARCHIVE_OLDEST, ARCHIVE_PENDING, COUNTED_SHARDS,
    EVICTED_EARLY, JOBS, MEMORY, MISSING_JOBS, OLDEST_READY, OPEN_BREAKERS, TOPIC_JOBS, TOPIC_OLDEST_READY,
};

/// What is read of the store as a whole. What is `None` is left out.
#[derive(Clone, Copy, Default)]
pub(super) struct WholeStore {
    /// The share of its memory limit that it uses.
    pub(super) memory: Option<f64>,
    /// How many breakers are open or returning.
    pub(super) open_breakers: Option<usize>,
}

/// Returns the metrics of these shards, and of these topics in them. Without shards the metrics have no values, except
/// the number of shards, which is 0, and those of the store as a whole.
pub(super) fn of(shards: &[&ShardGauges], topics: &[Topic], store: WholeStore) -> Vec<GaugeValues> {
    let (mut jobs, mut missing, mut evicted, mut oldest) = (vec![], vec![], vec![], vec![]);
    let (mut topic_jobs, mut topic_oldest) = (vec![], vec![]);
    if !shards.is_empty() {
        let all = sum(shards.iter().map(|shard| &shard.all));
        add(&all, &[], &mut jobs, &mut oldest);
        missing.push((Vec::new(), shards.iter().map(|shard| shard.missing).sum::<u64>() as f64));
        evicted.push((Vec::new(), shards.iter().map(|shard| shard.evicted_early).sum::<u64>() as f64));
        for (n, topic) in topics.iter().enumerate() {
            let of_topic = sum(shards.iter().filter_map(|shard| shard.topics.get(n)));
            add(&of_topic, &[topic.as_str()], &mut topic_jobs, &mut topic_oldest);
        }
    }
    let counted = vec![(Vec::new(), shards.len() as f64)];
    let mut families = archive(shards);
    let one = |value: Option<f64>| value.into_iter().map(|value| (Vec::new(), value)).collect();
    families.extend([
        gauge(JOBS, jobs),
        gauge(MISSING_JOBS, missing),
        gauge(EVICTED_EARLY, evicted),
        gauge(MEMORY, one(store.memory)),
        gauge(OPEN_BREAKERS, one(store.open_breakers.map(|n| n as f64))),
        gauge(OLDEST_READY, oldest),
        gauge(TOPIC_JOBS, topic_jobs),
        gauge(TOPIC_OLDEST_READY, topic_oldest),
        gauge(COUNTED_SHARDS, counted),
    ]);
    families
}

/// Returns the metrics of the archive outboxes. Without an archive all are 0; without shards they have no values.
fn archive(shards: &[&ShardGauges]) -> Vec<GaugeValues> {
    let sum = |of: fn(&ArchiveGauge) -> u64| match shards {
        [] => Vec::new(),
        shards => vec![(Vec::new(), shards.iter().map(|shard| of(&shard.archive)).sum::<u64>() as f64)],
    };
    let oldest = shards.iter().map(|shard| shard.archive.oldest.unwrap_or_default()).max();
    let oldest = oldest.into_iter().map(|age| (Vec::new(), age.as_secs_f64())).collect();
    vec![
        gauge(ARCHIVE_PENDING, sum(|archive| archive.pending)),
        gauge(ARCHIVE_BYTES, sum(|archive| archive.bytes)),
        gauge(ARCHIVE_DROPPED, sum(|archive| archive.dropped)),
        gauge(ARCHIVE_OLDEST, oldest),
        gauge(ARCHIVE_FULL, sum(|archive| archive.is_full.into())),
    ]
}

type Values = Vec<(Vec<String>, f64)>;

const fn gauge(metric: Metric, values: Values) -> GaugeValues {
    GaugeValues { metric, values }
}

fn sum<'g>(gauges: impl Iterator<Item = &'g JobGauge>) -> JobGauge {
    gauges.fold(JobGauge::empty(), |mut sum, gauge| {
        sum.add(gauge);
        sum
    })
}

/// Appends the counts of a gauge to `jobs`, one per state, and its age to `oldest`, unless the age is not known.
fn add(gauge: &JobGauge, labels: &[&str], jobs: &mut Values, oldest: &mut Values) {
    let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
    let mut states: StateCounts = gauge.states.clone();
    for &state in State::VARIANTS {
        let labels = labels.iter().cloned().chain([state.to_string()]).collect();
        jobs.push((labels, *states.of(state) as f64));
    }
    oldest.extend(gauge.oldest_ready.map(|age| (labels, age.as_secs_f64())));
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn job_gauge(ready: u64, oldest_ready: Option<u64>) -> JobGauge {
        let states = StateCounts { ready, dead: 1, ..StateCounts::default() };
        JobGauge { states, oldest_ready: oldest_ready.map(Duration::from_millis) }
    }

    fn values(gauges: &[GaugeValues], metric: Metric) -> Vec<(String, f64)> {
        let gauge = gauges.iter().find(|gauge| gauge.metric == metric).unwrap();
        gauge.values.iter().map(|(labels, value)| (labels.join(" "), *value)).collect()
    }

    #[test]
    fn shards_add_up_and_the_oldest_job_counts() {
        let shard = |ready, oldest| ShardGauges {
            all: job_gauge(ready, Some(oldest)),
            missing: ready,
            evicted_early: 2 * ready,
            archive: ArchiveGauge {
                pending: ready,
                oldest: Some(Duration::from_millis(oldest)),
                is_full: ready == 3,
                ..ArchiveGauge::default()
            },
            topics: vec![job_gauge(1, Some(500)), job_gauge(0, None)],
        };
        let (one, two) = (shard(2, 1500), shard(3, 250));
        let topics = ["a", "b"].map(|name| name.parse().unwrap());
        let gauges = of(&[&one, &two], &topics, WholeStore { memory: Some(0.5), open_breakers: Some(2) });
        let jobs = values(&gauges, JOBS);
        assert_eq!(jobs.len(), 6);
        assert!(jobs.contains(&("ready".to_owned(), 5.0)) && jobs.contains(&("dead".to_owned(), 2.0)));
        assert_eq!(values(&gauges, MISSING_JOBS), [(String::new(), 5.0)]);
        assert_eq!(values(&gauges, EVICTED_EARLY), [(String::new(), 10.0)]);
        assert_eq!(values(&gauges, MEMORY), [(String::new(), 0.5)]);
        assert_eq!(values(&gauges, OPEN_BREAKERS), [(String::new(), 2.0)]);
        assert_eq!(values(&gauges, OLDEST_READY), [(String::new(), 1.5)]);
        assert!(values(&gauges, TOPIC_JOBS).contains(&("a ready".to_owned(), 2.0)));
        assert_eq!(values(&gauges, TOPIC_OLDEST_READY), [("a".to_owned(), 0.5)], "that of b is not known");
        assert_eq!(values(&gauges, COUNTED_SHARDS), [(String::new(), 2.0)]);
        for (metric, value) in
            [(ARCHIVE_PENDING, 5.0), (ARCHIVE_OLDEST, 1.5), (ARCHIVE_FULL, 1.0), (ARCHIVE_DROPPED, 0.0)]
        {
            assert_eq!(values(&gauges, metric), [(String::new(), value)], "{}", metric.name);
        }
    }

    #[test]
    fn without_shards_only_their_number_is_shown() {
        let gauges = of(&[], &["a".parse().unwrap()], WholeStore::default());
        let shown: Vec<_> = gauges.iter().filter(|gauge| !gauge.values.is_empty()).collect();
        assert_eq!(shown.len(), 1);
        assert_eq!(values(&gauges, COUNTED_SHARDS), [(String::new(), 0.0)]);
    }
}
