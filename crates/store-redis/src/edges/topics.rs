//! Pausing and resuming topics.

use ringback_core::contract::{MAX_RESUMED_LANES, Shard, StoreError, TopicCapacity};
use ringback_core::job::Topic;

use crate::redis_store::RedisStore;
use crate::script;

impl RedisStore {
    /// Pauses a topic in a shard. False when it would be one topic too many and `room` is needed.
    pub async fn pause(&self, shard: Shard, topic: &Topic, room: TopicCapacity) -> Result<bool, StoreError> {
        let is_limited = room == TopicCapacity::Needed;
        self.ask(&script::PAUSE, shard, (topic.as_str(), is_limited)).await
    }

    /// Resumes a topic in a shard. Returns whether the topic is known there.
    pub async fn resume(&self, shard: Shard, topic: &Topic) -> Result<bool, StoreError> {
        loop {
            match self.ask(&script::RESUME, shard, (topic.as_str(), MAX_RESUMED_LANES)).await? {
                0 => return Ok(false),
                1 => return Ok(true),
                _ => {}
            }
        }
    }
}
