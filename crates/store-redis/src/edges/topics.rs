//! Pausing and resuming topics.

use ringback_core::contract::{MAX_RESUMED_LANES, Shard, StoreError, TopicCapacity};
use ringback_core::job::Topic;

use crate::redis_store::RedisStore;
use crate::script;

impl RedisStore {
    /// Pauses a topic in a shard. False when it would be one topic too many and `room` is needed.
    pub async fn pause(&self, shard: Shard, topic: &Topic, room: TopicCapacity) -> Result<bool, StoreError> {
        let is_paused = self.run(&script::PAUSE, shard, |cmd| {
            cmd.arg(topic.as_str()).arg(u8::from(room == TopicCapacity::Needed));
        });
        is_paused.await
    }

    /// Resumes a topic in a shard. Returns whether the topic is known there.
    pub async fn resume(&self, shard: Shard, topic: &Topic) -> Result<bool, StoreError> {
        loop {
            let answer = self.run(&script::RESUME, shard, |cmd| {
                cmd.arg(topic.as_str()).arg(MAX_RESUMED_LANES);
            });
            match answer.await? {
                0 => return Ok(false),
                1 => return Ok(true),
                _ => {}
            }
        }
    }
}
