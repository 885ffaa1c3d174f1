//! The counts of a shard, of its topics, and of all topics of a tenant. A topic also shows since when its first job
//! waits.

use std::ops::Bound;
use std::time::Duration;

use redb::ReadTransaction;
use ringback_core::clock::{Timestamp, millis_up};
use ringback_core::job::{TenantScope, Topic};
use ringback_core::state::State;
use ringback_core::store_types::{
    ArchiveStatus, DUE_HORIZON, MAX_LANES_SEARCHED, MAX_READY_SEARCHED, Shard, Stats, StoreError,
    TopicCounts, TopicPresence, TopicShardPage, TopicSpan, TopicTotals,
};

use crate::error::Result;
use crate::tables::{EndedCounts, LaneCounts, Tables};
use crate::txn::Txn;
use crate::{ANY_SHARD, EmbeddedStore};

/// How many topics are read at a time.
const TOPICS_AT_A_TIME: usize = 1000;

impl EmbeddedStore {
    pub async fn stats(&self, shard: Shard) -> Result<Stats, StoreError> {
        self.call(shard, 0, |txn| stats(txn)).await
    }

    /// Returns whether a topic has jobs in a shard; `None` if the shard does not know the topic.
    pub async fn presence(&self, shard: Shard, topic: &Topic) -> Result<Option<TopicPresence>, StoreError> {
        let topic = topic.clone();
        let glance = move |txn: &mut Txn<'_>| {
            let shard = txn.shard();
            if !txn.tables.due.is_known(shard, topic.as_str())? {
                return Ok(None);
            }
            let lanes = txn.tables.counts.topics.load(shard, topic.as_str())?.lanes;
            Ok(Some(if lanes > 0 { TopicPresence::Jobs } else { TopicPresence::NoJobs }))
        };
        self.call(shard, 0, glance).await
    }

    pub async fn topics(&self, span: &TopicSpan) -> Result<Vec<TopicShardPage>, StoreError> {
        let shards = self.options.all_shards();
        let (snapshot, now) = self.dated_snapshot().await?;
        let span = span.clone();
        self.read(snapshot, move |tables| {
            shards.map(|shard| View { tables, shard: shard.0, now }.read(&span)).collect()
        })
        .await
    }

    /// Returns the names of all topics of a scope, and the sum of their counts.
    pub async fn totals(&self, scope: &TenantScope) -> Result<TopicTotals, StoreError> {
        let shards = self.options.all_shards();
        let (snapshot, scope) = (self.snapshot().await?, scope.clone());
        self.read(snapshot, move |tables| {
            let mut totals = TopicTotals::default();
            for shard in shards {
                totals.add(of_scope(tables, shard.0, &scope)?);
            }
            Ok(totals)
        })
        .await
    }

    /// Returns a snapshot, and the store's time in ms. The time is read after the snapshot, so nothing that happened in
    /// the snapshot is later, unless the clock was set back in between.
    pub(crate) async fn dated_snapshot(&self) -> Result<(ReadTransaction, u64), StoreError> {
        let snapshot = self.snapshot().await?;
        let now = self.call(ANY_SHARD, 0, |txn| Ok(txn.now())).await?;
        Ok((snapshot, now))
    }
}

/// Returns the names of all topics of a scope in a shard, and the sum of their counts.
fn of_scope(tables: &Tables<ReadTransaction>, shard: u16, scope: &TenantScope) -> Result<TopicTotals> {
    let (least, below) = scope.bounds();
    let (mut totals, mut from) = (TopicTotals::default(), least.clone());
    loop {
        let names = tables.due.topics(shard, &from, TOPICS_AT_A_TIME)?;
        let has_more = names.len() == TOPICS_AT_A_TIME;
        let of_scope = names.iter().take_while(|name| below.as_ref().is_none_or(|below| *name < below));
        let mut last = None;
        for name in of_scope {
            let EndedCounts { done, cancelled } = tables.counts.topics.stored(shard, name)?.ended;
            totals.counts.add(&TopicCounts { done, cancelled, ..TopicCounts::default() });
            totals.topics.insert(Topic::from_stored(name).ok_or(StoreError::Unreadable("a topic"))?);
            last = Some(name);
        }
        let Some(last) = last.filter(|last| has_more && Some(*last) == names.last()) else { break };
        // The first possible name after a topic is the topic with a space behind it.
        from = format!("{last} ");
    }
    let till =
        below.as_deref().map_or(Bound::Excluded((shard + 1, "")), |below| Bound::Excluded((shard, below)));
    for lane in tables.counts.lanes_between(Bound::Included((shard, &*least)), till)? {
        totals.counts.add(&in_states(&lane?.1));
    }
    Ok(totals)
}

fn in_states(jobs: &LaneCounts) -> TopicCounts {
    let count = |state| u64::try_from(jobs.of(state)).unwrap_or(0);
    TopicCounts {
        delayed: count(State::Delayed),
        ready: count(State::Ready),
        reserved: count(State::Reserved),
        dead: count(State::Dead),
        ..TopicCounts::default()
    }
}

fn stats(txn: &Txn<'_>) -> Result<Stats> {
    let (shard, ledger) = (txn.shard(), &txn.row.ledger);
    Ok(Stats {
        accepted: ledger.accepted,
        states: ledger.counts(),
        topics: txn.tables.due.topics(shard, "", usize::MAX)?.into_iter().collect(),
        lateness: txn.tables.minutes.recent(shard, txn.now())?,
        evicted_early: ledger.evicted_early,
        // The first shard reports the notices of all shards.
        pending_notices: if shard == 0 { txn.tables.outbox.len()? } else { 0 },
        // The store adds it.
        archive: ArchiveStatus::default(),
    })
}

/// A shard in a snapshot.
pub(super) struct View<'t> {
    pub(super) tables: &'t Tables<ReadTransaction>,
    pub(super) shard: u16,
    /// In ms; nothing in the snapshot is later.
    pub(super) now: u64,
}

impl View<'_> {
    fn read(&self, span: &TopicSpan) -> Result<TopicShardPage> {
        let due = &self.tables.due;
        let (names, is_more) = match span {
            TopicSpan::One(topic) => {
                let is_known = due.is_known(self.shard, topic.as_str())?;
                (is_known.then(|| topic.as_str().to_owned()).into_iter().collect(), false)
            }
            TopicSpan::After(scope, after, limit) => {
                let (least, below) = scope.bounds();
                // The first possible name after a topic is the topic with a space behind it.
                let from = after.as_ref().map_or(least, |topic| format!("{} ", topic.as_str()));
                let mut names = due.topics(self.shard, &from, limit + 1)?;
                names.retain(|name| below.as_ref().is_none_or(|below| name < below));
                let is_more = names.len() > *limit;
                names.truncate(*limit);
                (names, is_more)
            }
        };
        let (mut found, mut lanes_left) = (Vec::with_capacity(names.len()), MAX_LANES_SEARCHED);
        for name in names {
            let (counts, _oldest_ready) = self.counts(&name, &mut lanes_left)?;
            let topic = Topic::from_stored(&name).ok_or(StoreError::Unreadable("a topic"))?;
            found.push((topic, counts));
        }
        Ok((found, is_more))
    }

    /// Returns the counts of a topic, and the earliest due time, in ms, of the first ready jobs of its lanes. Each lane
    /// lowers `lanes_left` by one; at 0 the first jobs of further lanes are not read.
    pub(super) fn counts(&self, topic: &str, lanes_left: &mut usize) -> Result<(TopicCounts, Option<u64>)> {
        let row = self.tables.counts.topics.stored(self.shard, topic)?;
        let EndedCounts { done, cancelled } = row.ended;
        let near = self.now.saturating_add(millis_up(DUE_HORIZON));
        let first = self.tables.due.first_of(self.shard, topic)?.filter(|at| *at <= near);
        let oldest_due = first.map(Timestamp::from_millis);
        let paused = row.is_paused();
        let mut sum = TopicCounts { paused, done, cancelled, oldest_due, ..TopicCounts::default() };
        let mut oldest = None;
        for lane in self.tables.counts.stored_lanes(self.shard, topic)? {
            let (lane, jobs) = lane?;
            let counts = in_states(&jobs);
            let is_read = *lanes_left > 0 && counts.ready > 0;
            *lanes_left = lanes_left.saturating_sub(1);
            let since = if is_read { self.oldest_ready(&lane)? } else { None };
            oldest = [oldest, since].into_iter().flatten().min();
            sum.add(&TopicCounts {
                oldest_due: since.map(Timestamp::from_millis),
                late: Duration::from_millis(since.map_or(0, |since| self.now.saturating_sub(since))),
                ..counts
            });
        }
        Ok((sum, oldest))
    }

    /// Returns the earliest due time, in ms, of the first [`MAX_READY_SEARCHED`] ready jobs of a lane.
    pub(super) fn oldest_ready(&self, lane: &str) -> Result<Option<u64>> {
        let mut oldest = None;
        for (_, number) in self.tables.ready.first(self.shard, lane, MAX_READY_SEARCHED)? {
            let due = self.tables.records.get(number)?.map(|job| job.due);
            oldest = [oldest, due].into_iter().flatten().min();
        }
        Ok(oldest)
    }
}
