//! What a shard knows of topics, read a part at a time from the index of their names and lanes. In
//! that a topic stands as its name and a space, and a lane with its id behind that.

use std::time::Duration;

use bytes::Bytes;
use redis::Value;
use ringback_core::clock::Timestamp;
use ringback_core::contract::{
    MAX_LANES_SEARCHED, MAX_RESUMED_LANES, Shard, StoreError, TopicCapacity, TopicCounts, TopicPresence,
    TopicShardPage, TopicSpan,
};
use ringback_core::job::Topic;

use super::RedisStore;
use super::script::{self, reply};

/// How many topics and lanes one call looks into, so that it is short.
const PART: usize = 128;
/// And how many where only the counts are read.
const COUNTED: usize = 1000;

const UNREADABLE: StoreError = StoreError::Unreadable("what is known of topics");

impl RedisStore {
    /// False when it would be one topic too many, and that matters.
    pub async fn pause(&self, shard: Shard, topic: &Topic, room: TopicCapacity) -> Result<bool, StoreError> {
        let answer = self.run(&script::PAUSE, shard, |cmd| {
            cmd.arg(topic.as_str()).arg(u8::from(room == TopicCapacity::Needed));
        });
        Ok(reply::int(&answer.await?)? == 1)
    }

    /// Whether the topic is known in this shard.
    pub async fn resume(&self, shard: Shard, topic: &Topic) -> Result<bool, StoreError> {
        loop {
            let answer = self.run(&script::RESUME, shard, |cmd| {
                cmd.arg(topic.as_str()).arg(MAX_RESUMED_LANES);
            });
            match reply::int(&answer.await?)? {
                0 => return Ok(false),
                1 => return Ok(true),
                _ => {}
            }
        }
    }

    pub async fn topics(&self, shard: Shard, span: &TopicSpan) -> Result<TopicShardPage, StoreError> {
        let (mut from, till, limit) = match span {
            TopicSpan::One(topic) => (begin(topic), end(topic), 1),
            TopicSpan::After(Some(topic), limit) => (end(topic), b"+".to_vec(), *limit),
            TopicSpan::After(None, limit) => (b"-".to_vec(), b"+".to_vec(), *limit),
        };
        let (mut found, mut looked): (Vec<(Topic, TopicCounts)>, usize) = (Vec::new(), 0);
        loop {
            let look = if looked < MAX_LANES_SEARCHED { Look::Into(PART) } else { Look::At(COUNTED) };
            let (last, parts) = self.part(shard, &from, &till, look).await?;
            looked += PART;
            for (topic, counts) in parts {
                match found.last_mut().filter(|(known, _)| *known == topic) {
                    Some((_, sum)) => sum.add(&counts),
                    None => found.push((topic, counts)),
                }
            }
            // The one that it ended with may have more lanes.
            if last.is_empty() || found.len() > limit {
                let is_more = found.len() > limit;
                found.truncate(limit);
                return Ok((found, is_more));
            }
            from = [b"(", last.as_ref()].concat();
        }
    }

    pub async fn presence(&self, shard: Shard, topic: &Topic) -> Result<Option<TopicPresence>, StoreError> {
        // The topic, and its first lane: one that has no jobs is forgotten.
        let (_, found) = self.part(shard, &begin(topic), &end(topic), Look::At(2)).await?;
        let seen = |(_, counts): &(Topic, TopicCounts)| match counts.jobs() {
            0 => TopicPresence::NoJobs,
            _ => TopicPresence::Jobs,
        };
        Ok(found.first().map(seen))
    }

    /// What stands in a part of the index, and the last of it where there may be more.
    async fn part(
        &self,
        shard: Shard,
        from: &[u8],
        till: &[u8],
        look: Look,
    ) -> Result<(Bytes, Vec<(Topic, TopicCounts)>), StoreError> {
        let answer = self.run(&script::TOPICS, shard, |cmd| {
            let (most, into) = match look {
                Look::Into(most) => (most, 1),
                Look::At(most) => (most, 0),
            };
            cmd.arg(from).arg(till).arg(most).arg(into);
        });
        let mut parts = reply::list(answer.await?)?.into_iter();
        let last = reply::bytes(parts.next().ok_or(UNREADABLE)?)?;
        Ok((last, parts.map(known).collect::<Result<_, _>>()?))
    }
}

/// So many lanes and topics: with their first jobs, or what is counted alone.
#[derive(Clone, Copy)]
enum Look {
    Into(usize),
    At(usize),
}

/// Where a topic begins in the order of the index.
fn begin(topic: &Topic) -> Vec<u8> {
    format!("[{topic} ").into_bytes()
}

/// What follows the space in that order: behind all of a topic.
fn end(topic: &Topic) -> Vec<u8> {
    format!("({topic}!").into_bytes()
}

fn known(part: Value) -> Result<(Topic, TopicCounts), StoreError> {
    let parts: Result<[Value; 10], _> = reply::list(part)?.try_into();
    let Ok([topic, paused, delayed, ready, reserved, dead, done, cancelled, due, late]) = parts else {
        return Err(UNREADABLE);
    };
    let topic: Bytes = reply::bytes(topic)?;
    let topic = std::str::from_utf8(&topic).ok().and_then(|topic| topic.parse().ok()).ok_or(UNREADABLE)?;
    // A count below nothing would be a bug of a script; it shows as nothing.
    let count = |value: &Value| Ok::<_, StoreError>(u64::try_from(reply::int(value)?).unwrap_or(0));
    let counts = TopicCounts {
        paused: count(&paused)? > 0,
        delayed: count(&delayed)?,
        ready: count(&ready)?,
        reserved: count(&reserved)?,
        dead: count(&dead)?,
        done: count(&done)?,
        cancelled: count(&cancelled)?,
        oldest_due: Some(count(&due)?).filter(|at| *at > 0).map(Timestamp::from_millis),
        late: Duration::from_millis(count(&late)?),
    };
    Ok((topic, counts))
}
