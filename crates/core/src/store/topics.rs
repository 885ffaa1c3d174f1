//! What the store knows of topics: how many jobs each has in which state, and how late they are. And
//! the edges of a topic: pause and resume.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::try_join_all;

use super::{Backend, Limit, Store, StoreError};
use crate::clock::Timestamp;
use crate::job::Topic;

/// The most topics of a page.
pub const MAX_TOPICS: usize = 1000;
/// So many topics of a shard may have jobs or be paused. Each shard counts for itself: a job's shard
/// is all that is asked when it comes.
pub const MOST_TOPICS: u64 = 10_000;
/// So many lanes of a shard may have jobs: topics with the origins of their callbacks.
pub const MOST_LANES: u64 = 100_000;
/// Due times of delayed jobs further off than this are not looked for.
pub(super) const NEAR: Duration = Duration::from_secs(600);
/// So many of the first ready jobs of a lane are looked at, since they are only nearly in order.
pub(super) const FIRST: usize = 8;

/// Of so many lanes of each shard an answer tells when their first jobs are due; of more the counts alone.
pub(super) const MOST_LOOKED: usize = 4096;

/// So many lanes of a topic that is resumed get their turns again in one step.
pub(super) const MOST_UNPARKED: usize = 1000;

/// What is known of a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicCounts {
    /// Nothing of it is handed over.
    pub paused: bool,
    /// Jobs that wait for their due time.
    pub delayed: u64,
    /// Jobs that are due and wait to be handed over.
    pub ready: u64,
    /// Jobs that are being handed over.
    pub reserved: u64,
    /// Jobs that were given up and are kept.
    pub dead: u64,
    /// Jobs that were done since the topic is known.
    pub done: u64,
    /// Jobs that were cancelled since the topic is known.
    pub cancelled: u64,
    /// When the first of the delayed and ready jobs is due, or was: of those that are due within the
    /// next ten minutes, and of the ready ones the first eight of each lane; of each shard's first 4,096
    /// lanes.
    pub oldest_due: Option<Timestamp>,
    /// For how long the ready job that waits longest has been due: of the first eight of each
    /// of these lanes.
    pub late: Duration,
}

impl TopicCounts {
    /// How many jobs it has that have not ended.
    pub const fn jobs(&self) -> u64 {
        self.delayed + self.ready + self.reserved + self.dead
    }

    /// Adds what another shard, or another lane, knows of the same topic.
    pub(super) fn add(&mut self, other: &Self) {
        self.paused |= other.paused;
        self.delayed += other.delayed;
        self.ready += other.ready;
        self.reserved += other.reserved;
        self.dead += other.dead;
        self.done += other.done;
        self.cancelled += other.cancelled;
        self.oldest_due = [self.oldest_due, other.oldest_due].into_iter().flatten().min();
        self.late = self.late.max(other.late);
    }
}

/// Which topics of a shard are asked for.
#[derive(Clone, Debug)]
pub(super) enum Span {
    One(Topic),
    /// Those behind one, or all; at most so many.
    Behind(Option<Topic>, usize),
}

/// What is seen of a topic that is known, without a look at all of its lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Glance {
    Jobs,
    NoJobs,
}

/// Whether a topic that is paused needs room for one more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    Needed,
    Given,
}

/// Topics of a shard in the order of their names, and whether there are more behind them.
pub(super) type Stretch = (Vec<(Topic, TopicCounts)>, bool);

/// Topics in the order of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicPage {
    /// The topics.
    pub items: Vec<(Topic, TopicCounts)>,
    /// The one that the next page goes on behind; none on the last page.
    pub next: Option<Topic>,
}

impl Store {
    /// What is known of a topic, over all shards; none when nothing is: it has no jobs, and had none
    /// lately. Lanes and shards are not all read in one moment, so the sums can be off by what moved
    /// meanwhile.
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn topic(&self, topic: &Topic) -> Result<Option<TopicCounts>, StoreError> {
        let mut sum: Option<TopicCounts> = None;
        for (found, _) in self.stretches(&Span::One(topic.clone())).await? {
            for (_, counts) in found {
                sum.get_or_insert_default().add(&counts);
            }
        }
        Ok(sum)
    }

    /// A page of at most `limit` topics behind one, or the first page; at most [`MAX_TOPICS`].
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn topics(&self, behind: Option<&Topic>, limit: usize) -> Result<TopicPage, StoreError> {
        let limit = limit.clamp(1, MAX_TOPICS);
        let (mut sums, mut is_more) = (BTreeMap::<Topic, TopicCounts>::new(), false);
        for (found, more) in self.stretches(&Span::Behind(behind.cloned(), limit)).await? {
            is_more |= more;
            for (topic, counts) in found {
                sums.entry(topic).or_default().add(&counts);
            }
        }
        // Each shard has told of `limit` topics, or of all: so the first of all are whole.
        is_more |= sums.len() > limit;
        let items: Vec<_> = sums.into_iter().take(limit).collect();
        let next = items.last().filter(|_| is_more).map(|(topic, _)| topic.clone());
        Ok(TopicPage { items, next })
    }

    /// pause: nothing of the topic is handed over any more, to its callbacks or to consumers, from the
    /// answer on. What is being handed over goes on and is settled. A topic that was not known is from
    /// here on, unless there are too many: then it is not paused. Shard by shard: when it fails, it may be
    /// paused in some.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating does no harm.
    pub async fn pause(&self, topic: &Topic) -> Result<Result<(), Limit>, StoreError> {
        // One that has jobs in some shard can be paused in all of them.
        let is_known = self.glances(topic).await?.iter().any(Option::is_some);
        let room = if is_known { Room::Given } else { Room::Needed };
        for shard in self.shards() {
            let is_paused = match &self.backend {
                Backend::Redis(store) => store.pause(shard, topic, room).await?,
                Backend::Embedded(store) => store.pause(shard, topic, room).await?,
            };
            if !is_paused {
                self.resume(topic).await?;
                return Ok(Err(Limit::Topics));
            }
        }
        Ok(Ok(()))
    }

    /// resume: the end of a pause. Whether the topic is known. Shard by shard, as [`Store::pause`]: as
    /// long as one is left it counts as paused.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating does no harm.
    pub async fn resume(&self, topic: &Topic) -> Result<bool, StoreError> {
        let mut is_known = false;
        for shard in self.shards() {
            is_known |= match &self.backend {
                Backend::Redis(store) => store.resume(shard, topic).await?,
                Backend::Embedded(store) => store.resume(shard, topic).await?,
            };
        }
        Ok(is_known)
    }

    /// Whether a topic has jobs that have not ended. The shards are not all looked at in one moment;
    /// what comes meanwhile may be met or not.
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn has_jobs(&self, topic: &Topic) -> Result<bool, StoreError> {
        Ok(self.glances(topic).await?.contains(&Some(Glance::Jobs)))
    }

    /// What each shard knows of a topic at a glance; none where nothing.
    async fn glances(&self, topic: &Topic) -> Result<Vec<Option<Glance>>, StoreError> {
        try_join_all(self.shards().map(async |shard| match &self.backend {
            Backend::Redis(store) => store.glance(shard, topic).await,
            Backend::Embedded(store) => store.glance(shard, topic).await,
        }))
        .await
    }

    async fn stretches(&self, span: &Span) -> Result<Vec<Stretch>, StoreError> {
        match &self.backend {
            Backend::Redis(store) => try_join_all(self.shards().map(|shard| store.topics(shard, span))).await,
            Backend::Embedded(store) => store.topics(self.shards().collect(), span).await,
        }
    }
}
