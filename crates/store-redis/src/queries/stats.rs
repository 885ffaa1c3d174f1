//! Counts of a shard, from its ledger, of its topics, and of all topics of a tenant. The topics are read a part at a time
//! from an index of topics and their lanes. A topic's member is its name and a space; a lane's member has the lane's id
//! after that. The other queries use the bounds in this index from here.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::try_join_all;
use ringback_core::clock::Timestamp;
use ringback_core::job::{TenantScope, Topic};
use ringback_core::store_types::{
    LaneSpan, MAX_LANES_SEARCHED, Shard, Stats, StoreError, TopicCounts, TopicPresence, TopicShardPage,
    TopicSpan, TopicTotals,
};

use crate::redis_store::RedisStore;
use crate::script;

/// How many topics and lanes one call counts and reads first jobs of, so that it is short.
const LOOKED_INTO: usize = 128;
/// How many topics and lanes one call counts without reading jobs.
const COUNTED: usize = 1000;
/// The most lanes of a shard that have a row and no jobs.
const MOST_RESTING: usize = 128;

/// Names with numbers. A count below zero would be a bug of a script; it shows as zero.
type Counters = Vec<(String, i64)>;

impl RedisStore {
    pub async fn stats(&self, shard: Shard) -> Result<Stats, StoreError> {
        let (ledger, topics, minutes, pending_notices): (Counters, Vec<String>, Vec<Counters>, _) =
            self.call(&script::STATS, shard).run().await?;
        let mut stats = Stats { pending_notices, ..Stats::default() };
        for (name, n) in ledger {
            let n = u64::try_from(n).unwrap_or(0);
            match (name.as_str(), name.parse().ok()) {
                (_, Some(state)) => *stats.states.of(state) += n,
                ("purged", None) => stats.states.purged += n,
                ("missing", None) => stats.states.missing += n,
                ("accepted", None) => stats.accepted += n,
                ("tombstones_evicted_early", None) => stats.evicted_early += n,
                _ => {}
            }
        }
        stats.topics.extend(topics);
        for (name, n) in minutes.into_iter().flatten() {
            stats.lateness.add_field(&name, u64::try_from(n).unwrap_or(0));
        }
        Ok(stats)
    }

    pub async fn topics(&self, span: &TopicSpan) -> Result<Vec<TopicShardPage>, StoreError> {
        try_join_all(self.options.all_shards().map(|shard| self.topics_of(shard, span))).await
    }

    async fn topics_of(&self, shard: Shard, span: &TopicSpan) -> Result<TopicShardPage, StoreError> {
        let (mut from, till, limit) = match span {
            TopicSpan::One(topic) => (begin(topic), end(topic), 1),
            TopicSpan::After(scope, after, limit) => {
                let (first, till) = range(scope);
                (after.as_ref().map_or(first, end), till, *limit)
            }
        };
        let (mut found, mut looked): (Vec<(Topic, TopicCounts)>, usize) = (Vec::new(), 0);
        loop {
            let look = if looked < MAX_LANES_SEARCHED { Look::Into(LOOKED_INTO) } else { Look::At(COUNTED) };
            let (last, parts) = self.part(shard, &from, &till, look).await?;
            looked += LOOKED_INTO;
            for (topic, counts) in parts {
                match found.last_mut().filter(|(known, _)| *known == topic) {
                    Some((_, sum)) => sum.add(&counts),
                    None => found.push((topic, counts)),
                }
            }
            // The last topic may have more lanes.
            if last.is_empty() || found.len() > limit {
                let is_more = found.len() > limit;
                found.truncate(limit);
                return Ok((found, is_more));
            }
            from = behind(&last);
        }
    }

    /// Returns the names of all topics of a scope, and the sum of their counts.
    pub async fn totals(&self, scope: &TenantScope) -> Result<TopicTotals, StoreError> {
        let mut totals = TopicTotals::default();
        let of_shards = self.options.all_shards().map(|shard| self.totals_of(shard, scope));
        try_join_all(of_shards).await?.into_iter().for_each(|of_shard| totals.add(of_shard));
        Ok(totals)
    }

    async fn totals_of(&self, shard: Shard, scope: &TenantScope) -> Result<TopicTotals, StoreError> {
        let ((mut from, till), mut totals) = (range(scope), TopicTotals::default());
        loop {
            let (last, topics, counts): (Bytes, String, Vec<i64>) =
                self.call(&script::TOPICS, shard).arg((&from, &till, COUNTED, "sum")).run().await?;
            let unreadable = || StoreError::Unreadable("the counts of topics");
            totals.counts.add(&topic_counts(&counts).ok_or_else(unreadable)?);
            for topic in topics.split_ascii_whitespace() {
                totals.topics.insert(Topic::from_stored(topic).ok_or_else(unreadable)?);
            }
            if last.is_empty() {
                return Ok(totals);
            }
            from = behind(&last);
        }
    }

    pub async fn presence(&self, shard: Shard, topic: &Topic) -> Result<Option<TopicPresence>, StoreError> {
        // The topic, all lanes that may be without jobs, and one more.
        let look = Look::At(2 + MOST_RESTING);
        let (_, found) = self.part(shard, &begin(topic), &end(topic), look).await?;
        let seen = |(_, counts): &(Topic, TopicCounts)| match counts.jobs() {
            0 => TopicPresence::NoJobs,
            _ => TopicPresence::Jobs,
        };
        Ok(found.first().map(seen))
    }

    /// Reads a part of the index. Returns the last member if there may be more, else an empty one; and the topics with
    /// their counts, of which the first and the last may be incomplete.
    async fn part(
        &self,
        shard: Shard,
        from: &[u8],
        till: &[u8],
        look: Look,
    ) -> Result<(Bytes, Vec<(Topic, TopicCounts)>), StoreError> {
        let (most, into) = match look {
            Look::Into(most) => (most, true),
            Look::At(most) => (most, false),
        };
        let (last, parts): (Bytes, Vec<(String, Vec<i64>)>) =
            self.call(&script::TOPICS, shard).arg((from, till, most, into)).run().await?;
        let parts = parts.into_iter().map(|(topic, counts)| {
            let topic = Topic::from_stored(&topic).zip(topic_counts(&counts));
            topic.ok_or(StoreError::Unreadable("the counts of a topic"))
        });
        Ok((last, parts.collect::<Result<_, _>>()?))
    }
}

/// The most topics and lanes to read: with their first jobs, or their counts alone.
#[derive(Clone, Copy)]
enum Look {
    Into(usize),
    At(usize),
}

/// Returns the bounds of the lanes of a span in the order of the index.
pub(super) fn lanes(span: &LaneSpan) -> (Vec<u8>, Vec<u8>) {
    match span {
        LaneSpan::Topic(topic) => (begin(topic), end(topic)),
        LaneSpan::Of(scope) => range(scope),
    }
}

fn range(scope: &TenantScope) -> (Vec<u8>, Vec<u8>) {
    let (least, below) = scope.bounds();
    let till = below.map_or_else(|| "+".to_owned(), |below| format!("({below}"));
    (format!("[{least}").into_bytes(), till.into_bytes())
}

/// Returns the lower bound of a topic in the order of the index.
pub(super) fn begin(topic: &Topic) -> Vec<u8> {
    format!("[{} ", topic.as_str()).into_bytes()
}

/// Returns the lower bound for the members after one.
pub(super) fn behind(member: &[u8]) -> Vec<u8> {
    [b"(", member].concat()
}

/// Returns the upper bound of a topic in that order: `!` follows the space.
fn end(topic: &Topic) -> Vec<u8> {
    format!("({}!", topic.as_str()).into_bytes()
}

fn topic_counts(counts: &[i64]) -> Option<TopicCounts> {
    let counts: Vec<u64> = counts.iter().map(|n| u64::try_from(*n).unwrap_or(0)).collect();
    let &[paused, delayed, ready, reserved, dead, done, cancelled, due, late] = counts.as_slice() else {
        return None;
    };
    Some(TopicCounts {
        paused: paused > 0,
        delayed,
        ready,
        reserved,
        dead,
        done,
        cancelled,
        oldest_due: Some(due).filter(|at| *at > 0).map(Timestamp::from_millis),
        late: Duration::from_millis(late),
    })
}
