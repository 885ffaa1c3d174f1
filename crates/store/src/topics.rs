//! Topics over all shards: their counts, pause and resume; the jobs of a tenant in all topics, and grants of its quota.

use std::collections::BTreeMap;

use futures_util::future::try_join_all;
use ringback_core::clock::Timestamp;
use ringback_core::job::{Tenant, TenantLimits, TenantScope, Topic};
use ringback_core::store_types::{
    Limit, MAX_TOPIC_PAGE, QuotaGrant, QuotaRequest, StoreError, TopicCapacity, TopicCounts, TopicPage,
    TopicPresence, TopicSpan, TopicTotals,
};

use crate::backend::backend;
use crate::store::Store;

impl Store {
    /// The counts of a topic over all shards; `None` if it has no jobs and had none lately. Lanes and
    /// shards are not read at the same moment, so the sums can be off by what moved meanwhile.
    pub async fn topic(&self, topic: &Topic) -> Result<Option<TopicCounts>, StoreError> {
        let mut sum: Option<TopicCounts> = None;
        for (found, _) in backend!(self.topics(&TopicSpan::One(topic.clone())).await)? {
            for (_, counts) in found {
                sum.get_or_insert_default().add(&counts);
            }
        }
        Ok(sum)
    }

    /// A page of the topics of a scope, in order: those after `after`, or from the first. At most `limit`, up to 1,000.
    pub async fn topics(
        &self,
        scope: &TenantScope,
        after: Option<&Topic>,
        limit: usize,
    ) -> Result<TopicPage, StoreError> {
        let limit = limit.clamp(1, MAX_TOPIC_PAGE);
        let (mut sums, mut is_more) = (BTreeMap::<Topic, TopicCounts>::new(), false);
        for (found, more) in
            backend!(self.topics(&TopicSpan::After(scope.clone(), after.cloned(), limit)).await)?
        {
            is_more |= more;
            for (topic, counts) in found {
                sums.entry(topic).or_default().add(&counts);
            }
        }
        // Each shard has returned `limit` topics or all of them, so the first `limit` sums are complete.
        is_more |= sums.len() > limit;
        let items: Vec<_> = sums.into_iter().take(limit).collect();
        let next = items.last().filter(|_| is_more).map(|(topic, _)| topic.clone());
        Ok(TopicPage { items, next })
    }

    /// pause: no job of the topic is delivered or pulled any more. Deliveries that are under way go on and are settled.
    /// A topic that was not known becomes known; if there are too many, resumes it and returns the limit. Works shard
    /// by shard: if it fails, the topic may be paused in some of them.
    pub async fn pause(
        &self,
        topic: &Topic,
        limits: Option<TenantLimits>,
    ) -> Result<Result<(), Limit>, StoreError> {
        // A topic that has jobs in some shard can be paused in all of them.
        let is_known = self.presence(topic).await?.iter().any(Option::is_some);
        let capacity = if is_known { TopicCapacity::Given } else { TopicCapacity::Needed(limits) };
        for shard in self.shards() {
            if let Some(limit) = backend!(self.pause(shard, topic, capacity).await)? {
                self.resume(topic).await?;
                return Ok(Err(limit));
            }
        }
        Ok(Ok(()))
    }

    /// resume: ends a pause. Returns whether the topic is known. Works shard by shard like
    /// [`Store::pause`]: the topic counts as paused until the last shard has resumed.
    pub async fn resume(&self, topic: &Topic) -> Result<bool, StoreError> {
        let mut is_known = false;
        for shard in self.shards() {
            is_known |= backend!(self.resume(shard, topic).await)?;
        }
        Ok(is_known)
    }

    /// Whether a topic has jobs that have not ended. The shards are not read at the same moment, so a job
    /// that comes meanwhile may be missed.
    pub async fn has_jobs(&self, topic: &Topic) -> Result<bool, StoreError> {
        Ok(self.presence(topic).await?.contains(&Some(TopicPresence::Jobs)))
    }

    /// What each shard knows of the topic: whether it has jobs of it, or `None` if it does not know the topic.
    async fn presence(&self, topic: &Topic) -> Result<Vec<Option<TopicPresence>>, StoreError> {
        try_join_all(self.shards().map(async |shard| backend!(self.presence(shard, topic).await))).await
    }

    /// The sum of the counts of all topics of a scope, over all shards. Reads the counts of all their lanes, each once.
    pub async fn totals(&self, scope: &TenantScope) -> Result<TopicTotals, StoreError> {
        backend!(self.totals(scope).await)
    }

    /// How many jobs a tenant has, over all shards, that are delayed, ready, reserved or dead.
    pub async fn jobs_of(&self, tenant: &Tenant) -> Result<u64, StoreError> {
        Ok(self.totals(&TenantScope::One(Some(tenant.clone()))).await?.counts.jobs())
    }

    /// Draws from the number of jobs that a tenant may submit. `now` is the time of a store without a server.
    /// Repeating draws again.
    pub async fn grant_quota(
        &self,
        tenant: &Tenant,
        draw: QuotaRequest,
        now: Timestamp,
    ) -> Result<QuotaGrant, StoreError> {
        backend!(self.grant_quota(tenant, draw, now).await)
    }
}
