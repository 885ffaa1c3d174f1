//! Ordered topics over all shards: begins and ends their order, and unblocks a key that a dead job holds.

use ringback_core::job::{JobId, JobKey, OrderKey, Topic};
use ringback_core::store_types::{StoreError, TopicOrder};
use ringback_core::topic_policy::OrderOnDead;

use crate::backend::backend;
use crate::store::Store;

impl Store {
    /// Delivers the jobs of each key of a topic one at a time from now on, or with `None` no longer. Then looks for jobs
    /// that were attempted before, which hold their keys, or makes the jobs that wait deliverable; both take time in
    /// proportion to their number. If it fails half-way some shards have the new order; repeat it.
    pub async fn order_topic(&self, topic: &Topic, order: Option<OrderOnDead>) -> Result<(), StoreError> {
        for shard in self.shards() {
            backend!(self.order_topic(shard, topic, order).await)?;
        }
        Ok(())
    }

    /// Makes the order of a topic that of its stored policy, after the policy was deleted or put.
    pub(crate) async fn follow_order(&self, topic: &Topic) -> Result<(), StoreError> {
        loop {
            let wanted = self.policy(topic).await?.and_then(|policy| policy.order);
            self.order_topic(topic, wanted).await?;
            // Others may have put a policy meanwhile.
            if self.policy(topic).await?.and_then(|policy| policy.order) == wanted {
                return Ok(());
            }
        }
    }

    /// How a topic is ordered: `None` unless it is in all shards. `since` is the time of the last shard.
    pub async fn topic_order(&self, topic: &Topic) -> Result<Option<TopicOrder>, StoreError> {
        let mut found: Option<TopicOrder> = None;
        for shard in self.shards() {
            let Some(order) = backend!(self.topic_order(shard, topic).await)? else { return Ok(None) };
            let since = match found {
                Some(former) => former.since.zip(order.since).map(|(a, b)| a.max(b)),
                None => order.since,
            };
            found = Some(TopicOrder { since, ..order });
        }
        Ok(found)
    }

    /// Delivers the next job of a key that a dead job holds. Returns whether one held it.
    pub async fn unblock(&self, topic: &Topic, key: &OrderKey) -> Result<bool, StoreError> {
        let id: JobId = key.as_str().parse().map_err(|_| StoreError::Unreadable("a key"))?;
        let shard = self.shard_of(&JobKey { topic: topic.clone(), id });
        backend!(self.unblock(shard, topic, key).await)
    }
}
