//! What a shard knows of topics: its counts by lane, and the first of what waits.

use std::time::Duration;

use ringback_core::clock::{Timestamp, millis_up};
use ringback_core::contract::{
    DUE_HORIZON, MAX_LANES_SEARCHED, MAX_READY_SEARCHED, MAX_RESUMED_LANES, Shard, StoreError, TopicCapacity,
    TopicCounts, TopicPresence, TopicShardPage, TopicSpan,
};
use ringback_core::job::Topic;
use ringback_core::state::State;
use tokio::time::timeout;

use super::EmbeddedStore;
use super::edges;
use super::tables::{Ended, Hold, Known, Told};
use super::txn::Txn;

impl EmbeddedStore {
    /// False when it would be one topic too many, and that matters.
    pub async fn pause(&self, shard: Shard, topic: &Topic, room: TopicCapacity) -> Result<bool, StoreError> {
        let topic = topic.clone();
        self.call(shard, 256, move |txn| edges::pause(txn, topic.as_str(), room)).await
    }

    /// Whether the topic is known in this shard.
    pub async fn resume(&self, shard: Shard, topic: &Topic) -> Result<bool, StoreError> {
        loop {
            let topic = topic.clone();
            let resume = move |txn: &mut Txn<'_>| edges::resume(txn, topic.as_str(), MAX_RESUMED_LANES);
            match self.call(shard, MAX_RESUMED_LANES * 64, resume).await? {
                Some(true) => {}
                told => return Ok(told.is_some()),
            }
        }
    }

    pub async fn presence(&self, shard: Shard, topic: &Topic) -> Result<Option<TopicPresence>, StoreError> {
        let topic = topic.clone();
        let glance = move |txn: &mut Txn<'_>| {
            let shard = txn.shard();
            if !txn.tables.due.is_known(shard, topic.as_str())? {
                return Ok(None);
            }
            let lanes = txn.tables.counts.known(shard, topic.as_str())?.lanes;
            Ok(Some(if lanes > 0 { TopicPresence::Jobs } else { TopicPresence::NoJobs }))
        };
        self.call(shard, 0, glance).await
    }

    /// From a snapshot beside the writer: however many lanes there are, nobody waits for it.
    pub async fn topics(
        &self,
        shards: Vec<Shard>,
        span: &TopicSpan,
    ) -> Result<Vec<TopicShardPage>, StoreError> {
        let writer = self.writer.get().ok_or(StoreError::Unprepared)?;
        let patience = self.options.call_timeout;
        let snapshot =
            timeout(patience, writer.snapshot()).await.map_err(|_elapsed| StoreError::Slow(patience))??;
        // Of the writer, which never goes back; after the snapshot, so that nothing in it is later.
        let now = self.call(Shard(0), 0, |txn| Ok(txn.now())).await?;
        let span = span.clone();
        let read = tokio::task::spawn_blocking(move || {
            let told = Told::by(&snapshot)?;
            shards.into_iter().map(|shard| View { told: &told, shard: shard.0, now }.read(&span)).collect()
        });
        read.await.map_err(|_| StoreError::Closed)?
    }
}

/// What is told of a shard.
struct View<'t> {
    told: &'t Told,
    shard: u16,
    now: u64,
}

impl View<'_> {
    fn read(&self, span: &TopicSpan) -> Result<TopicShardPage, StoreError> {
        let (names, is_more) = match span {
            TopicSpan::One(topic) => {
                let is_known = self.told.is_known(self.shard, topic.as_str())?;
                (is_known.then(|| topic.to_string()).into_iter().collect(), false)
            }
            TopicSpan::After(topic, limit) => {
                // What follows a name is that with anything behind it.
                let behind = topic.as_ref().map(|topic| format!("{topic} ")).unwrap_or_default();
                let mut names = self.told.topics(self.shard, &behind, limit + 1)?;
                let is_more = names.len() > *limit;
                names.truncate(*limit);
                (names, is_more)
            }
        };
        let (mut found, mut left) = (Vec::with_capacity(names.len()), MAX_LANES_SEARCHED);
        for name in names {
            let counts = self.counts(&name, &mut left)?;
            let topic: Topic = name.parse().map_err(|_| StoreError::Unreadable("a topic"))?;
            found.push((topic, counts));
        }
        Ok((found, is_more))
    }

    /// `left` is how many lanes can be looked into still.
    fn counts(&self, topic: &str, left: &mut usize) -> Result<TopicCounts, StoreError> {
        let Known { hold, ended: Ended { done, cancelled }, .. } = self.told.known(self.shard, topic)?;
        let near = self.now.saturating_add(millis_up(DUE_HORIZON));
        let first = self.told.first_delayed(self.shard, topic)?.filter(|at| *at <= near);
        let oldest_due = first.map(Timestamp::from_millis);
        let paused = hold != Hold::None;
        let mut sum = TopicCounts { paused, done, cancelled, oldest_due, ..TopicCounts::default() };
        for lane in self.told.lanes(self.shard, topic)? {
            let (lane, jobs) = lane?;
            let count = |state| u64::try_from(jobs.of(state)).unwrap_or(0);
            let is_looked_into = *left > 0 && count(State::Ready) > 0;
            *left = left.saturating_sub(1);
            let since = if is_looked_into {
                self.told.first_ready(self.shard, &lane, MAX_READY_SEARCHED)?
            } else {
                None
            };
            sum.add(&TopicCounts {
                delayed: count(State::Delayed),
                ready: count(State::Ready),
                reserved: count(State::Reserved),
                dead: count(State::Dead),
                oldest_due: since.map(Timestamp::from_millis),
                late: Duration::from_millis(since.map_or(0, |since| self.now.saturating_sub(since))),
                ..TopicCounts::default()
            });
        }
        Ok(sum)
    }
}
