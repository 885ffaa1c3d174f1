//! Pausing and resuming topics.

use crate::job::Topic;
use crate::store::redis::redis_store::RedisStore;
use crate::store::redis::script;
use crate::store::topics::{MOST_UNPARKED, Room};
use crate::store::{Shard, StoreError};

impl RedisStore {
    /// Pauses a topic in a shard. False when it would be one topic too many and `room` is needed.
    pub(crate) async fn pause(&self, shard: Shard, topic: &Topic, room: Room) -> Result<bool, StoreError> {
        let is_paused = self.run(&script::PAUSE, shard, |cmd| {
            cmd.arg(topic.as_str()).arg(u8::from(room == Room::Needed));
        });
        is_paused.await
    }

    /// Resumes a topic in a shard. Returns whether the topic is known there.
    pub(crate) async fn resume(&self, shard: Shard, topic: &Topic) -> Result<bool, StoreError> {
        loop {
            let answer = self.run(&script::RESUME, shard, |cmd| {
                cmd.arg(topic.as_str()).arg(MOST_UNPARKED);
            });
            match answer.await? {
                0 => return Ok(false),
                1 => return Ok(true),
                _ => {}
            }
        }
    }
}
