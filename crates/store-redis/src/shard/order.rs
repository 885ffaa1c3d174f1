//! Ordered topics: begins and ends the order of a topic, and unblocks a key that a dead job holds.

use bytes::Bytes;
use ringback_core::clock::Timestamp;
use ringback_core::job::{OrderKey, Topic};
use ringback_core::store_types::{MAX_RESUMED_LANES, Shard, StoreError, TopicOrder};
use ringback_core::topic_policy::OrderOnDead;

use crate::redis_store::RedisStore;
use crate::script;

impl RedisStore {
    /// Begins the order of a topic, or ends it: then the jobs that wait become deliverable, a part at a time.
    pub async fn order_topic(
        &self,
        shard: Shard,
        topic: &Topic,
        order: Option<OrderOnDead>,
    ) -> Result<(), StoreError> {
        let Some(on_dead) = order else {
            let args = (topic.as_str(), MAX_RESUMED_LANES);
            while self.call(&script::UNORDER_TOPIC, shard).confirmed().arg(args).run::<bool>().await? {}
            return Ok(());
        };
        let mut place = Bytes::from_static(b"0");
        loop {
            let args = (topic.as_str(), mode(on_dead), &*place, MAX_RESUMED_LANES);
            place = self.call(&script::ORDER_TOPIC, shard).confirmed().arg(args).run().await?;
            if place.is_empty() {
                return Ok(());
            }
        }
    }

    /// Returns how a shard orders a topic; `None` if it does not.
    pub async fn topic_order(&self, shard: Shard, topic: &Topic) -> Result<Option<TopicOrder>, StoreError> {
        let (found, since): (String, u64) =
            self.call(&script::TOPIC_ORDER, shard).arg(topic.as_str()).run().await?;
        let on_dead = [OrderOnDead::Next, OrderOnDead::Hold].into_iter().find(|one| mode(*one) == found);
        let since = (since > 0).then(|| Timestamp::from_millis(since));
        Ok(on_dead.map(|on_dead| TopicOrder { on_dead, since }))
    }

    /// Lets the next job of a key go that a dead job holds. Returns whether one held it.
    pub async fn unblock(&self, shard: Shard, topic: &Topic, key: &OrderKey) -> Result<bool, StoreError> {
        self.call(&script::UNBLOCK, shard).confirmed().arg((topic.as_str(), key.as_str())).run().await
    }
}

/// The name under which the scripts know what the death of a job means.
const fn mode(on_dead: OrderOnDead) -> &'static str {
    match on_dead {
        OrderOnDead::Next => "n",
        OrderOnDead::Hold => "h",
    }
}
