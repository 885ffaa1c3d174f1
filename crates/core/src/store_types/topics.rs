//! Topics in the store: how many jobs each has in which state and how late they are, pages of topics, and the limits of
//! topics and lanes. Also entries of the shared configuration and the results of changing policies.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::admission::LimitTarget;
use super::destinations::PauseLimit;
use super::order::OrderWait;
use crate::clock::Timestamp;
use crate::job::{TenantLimits, TenantScope, Topic};
use crate::topic_policy::Metrics;

pub const MAX_TOPIC_PAGE: usize = 1000;
/// The most topics of a shard that have jobs or are paused. Each shard counts for itself, since a new
/// job reaches only its own shard.
pub const MAX_TOPICS: u64 = 10_000;
/// The most lanes of a shard that have jobs.
pub const MAX_LANES: u64 = 100_000;
/// How many topics or lanes of a shard a tenant may have: as many as its `quota` allows, and at most half of what
/// others leave of the `most` that a shard may have. `used` are those of all, `own` those of the tenant.
pub fn tenant_limit(quota: u32, most: u64, used: u64, own: u64) -> u64 {
    let others = used.saturating_sub(own);
    u64::from(quota).min(most.saturating_sub(others) / 2)
}

/// Delayed jobs that are due later than this do not count for [`TopicCounts::oldest_due`].
pub const DUE_HORIZON: Duration = Duration::from_secs(600);
/// How many ready jobs at the head of a lane are searched for the oldest. They are only nearly in order.
pub const MAX_READY_SEARCHED: usize = 8;
/// How many lanes of a shard are searched for due times in one call. The others are only counted.
pub const MAX_LANES_SEARCHED: usize = 4096;
/// How many lanes of a resumed topic are scheduled again in one step.
pub const MAX_RESUMED_LANES: usize = 1000;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicCounts {
    /// Whether the topic is paused: none of its jobs is delivered.
    pub paused: bool,
    /// Jobs that wait for their due time.
    pub delayed: u64,
    /// Jobs that are due and wait for a reserve.
    pub ready: u64,
    /// Jobs under a lease.
    pub reserved: u64,
    /// Jobs that failed for good and are kept.
    pub dead: u64,
    /// Jobs that were done since the topic became known.
    pub done: u64,
    /// Jobs that were cancelled since the topic became known.
    pub cancelled: u64,
    /// The earliest due time of the delayed and ready jobs. Searches delayed jobs that are due within ten
    /// minutes and the first eight ready jobs of each lane, in the first 4,096 lanes of each shard.
    pub oldest_due: Option<Timestamp>,
    /// How long the oldest ready job has been due, of the same jobs.
    pub late: Duration,
}

impl TopicCounts {
    /// The number of jobs that have not ended.
    pub const fn jobs(&self) -> u64 {
        self.delayed + self.ready + self.reserved + self.dead
    }

    /// Adds the counts of the same topic in another shard or lane.
    pub fn add(&mut self, other: &Self) {
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

/// The topics of a scope, and the sum of their counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicTotals {
    pub topics: HashSet<Topic>,
    /// The sum of their counts, without times.
    pub counts: TopicCounts,
}

impl TopicTotals {
    /// Adds the topics and counts of another shard.
    pub fn add(&mut self, other: Self) {
        self.topics.extend(other.topics);
        self.counts.add(&other.counts);
    }
}

/// The topics of a shard to read.
#[derive(Clone, Debug)]
pub enum TopicSpan {
    One(Topic),
    /// Topics of a scope after this one, or from the first; at most this many.
    After(TenantScope, Option<Topic>, usize),
}

/// The pauses that keep a job from being delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobPauses {
    pub topic: bool,
    /// Its destination is paused, for all jobs or for those of its tenant.
    pub destination: bool,
}

/// How many jobs before another one are counted.
pub const MAX_BEFORE: u32 = 1000;

/// What keeps a job from being delivered now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobWait {
    pub pauses: JobPauses,
    /// The limits of its lane; none of a pull job.
    pub limits: Vec<LimitTarget>,
    /// How many ready jobs of its lane come before it: [`MAX_BEFORE`] if there are as many or more. `None` if it is not
    /// ready.
    pub before: Option<u32>,
    /// The jobs of its key that go before it, if it is ready, its topic is ordered, and there are any.
    pub order: Option<OrderWait>,
}

/// Whether a known topic has jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicPresence {
    /// It has jobs that have not ended.
    Jobs,
    NoJobs,
}

/// Whether pausing a topic counts against [`MAX_TOPICS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicCapacity {
    /// The topic is new and needs a free place, also among those of a caller that is a tenant.
    Needed(Option<TenantLimits>),
    /// The topic is known in some shard and is paused in any case.
    Given,
}

/// Topics of one shard sorted by name, and whether more follow.
pub type TopicShardPage = (Vec<(Topic, TopicCounts)>, bool);

/// Topics sorted by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicPage {
    pub items: Vec<(Topic, TopicCounts)>,
    /// The topic after which the next page begins; `None` on the last page.
    pub next: Option<Topic>,
}

/// An entry of the shared configuration, of which every process has a copy: the policy of a topic under the text of the
/// topic, or the key of a caller.
#[derive(Clone, Copy, Debug)]
pub struct ConfigEntry<'a> {
    /// What it is stored under.
    pub name: &'a str,
    /// Its JSON.
    pub written: &'a str,
    /// Whether it asks for metrics of its own.
    pub metrics: Metrics,
    /// How many entries there may be with it.
    pub limit: usize,
}

/// The version of the stored policies. It grows with every change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PolicyVersion(pub u64);

/// The result of putting a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyPut {
    /// The topic had no policy before.
    Created(PolicyVersion),
    /// It replaced the topic's policy.
    Replaced(PolicyVersion),
    /// There are [`MAX_POLICIES`](crate::topic_policy::MAX_POLICIES) already. Nothing changed.
    TooMany,
    /// [`MAX_TOPICS_WITH_METRICS`](crate::topic_policy::MAX_TOPICS_WITH_METRICS) other topics have metrics of
    /// their own already. Nothing changed.
    TooManyWithMetrics,
    /// The policy has limits, and there are as many limits as there may be. Nothing changed.
    TooManyLimits(PauseLimit),
    /// The topic does not have the policy that was to be replaced. Nothing changed.
    Outdated,
}

/// All policies as a backend keeps them: topic and JSON.
pub type PolicyRows = HashMap<String, String>;
