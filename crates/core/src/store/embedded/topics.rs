//! What a shard knows of topics: its counts by lane, and the first of what waits.

use std::time::Duration;

use super::EmbeddedStore;
use super::edges;
use super::tables::{Ended, Hold, Known};
use super::txn::Txn;
use crate::clock::{Timestamp, millis_up};
use crate::job::Topic;
use crate::state::State;
use crate::store::topics::{FIRST, MOST_UNPARKED, NEAR, Room, Span, Stretch, TopicCounts};
use crate::store::{Shard, StoreError};

impl EmbeddedStore {
    /// False when it would be one topic too many, and that matters.
    pub(in crate::store) async fn pause(
        &self,
        shard: Shard,
        topic: &Topic,
        room: Room,
    ) -> Result<bool, StoreError> {
        let topic = topic.clone();
        self.call(shard, 256, move |txn| edges::pause(txn, topic.as_str(), room)).await
    }

    /// Whether the topic is known in this shard.
    pub(in crate::store) async fn resume(&self, shard: Shard, topic: &Topic) -> Result<bool, StoreError> {
        loop {
            let topic = topic.clone();
            let resume = move |txn: &mut Txn<'_>| edges::resume(txn, topic.as_str(), MOST_UNPARKED);
            match self.call(shard, MOST_UNPARKED * 64, resume).await? {
                Some(true) => {}
                told => return Ok(told.is_some()),
            }
        }
    }

    pub(in crate::store) async fn topics(&self, shard: Shard, span: &Span) -> Result<Stretch, StoreError> {
        let span = span.clone();
        self.call(shard, 0, move |txn| read(txn, &span)).await
    }
}

fn read(txn: &mut Txn<'_>, span: &Span) -> Result<Stretch, StoreError> {
    let shard = txn.shard();
    let (names, is_more) = match span {
        Span::One(topic) => (txn.tables.due.known_from(shard, topic.as_str(), 1)?, false),
        Span::Behind(topic, limit) => {
            let behind = topic.as_ref().map(|topic| format!("{topic} ")).unwrap_or_default();
            let mut names = txn.tables.due.known_from(shard, &behind, limit + 1)?;
            let is_more = names.len() > *limit;
            names.truncate(*limit);
            (names, is_more)
        }
    };
    let mut found = Vec::with_capacity(names.len());
    for name in names {
        if matches!(span, Span::One(topic) if topic.as_str() != name) {
            continue;
        }
        let counts = counts(txn, &name)?;
        let topic: Topic = name.parse().map_err(|_| StoreError::Unreadable("a topic"))?;
        found.push((topic, counts));
    }
    Ok((found, is_more))
}

fn counts(txn: &mut Txn<'_>, topic: &str) -> Result<TopicCounts, StoreError> {
    let (shard, now) = (txn.shard(), txn.now());
    let mut sum = TopicCounts::default();
    for (lane, jobs) in txn.tables.counts.lanes(shard, topic)? {
        let count = |state| u64::try_from(jobs.of(state)).unwrap_or(0);
        let since = first_ready(txn, &lane)?;
        sum.add(&TopicCounts {
            paused: false,
            delayed: count(State::Delayed),
            ready: count(State::Ready),
            reserved: count(State::Reserved),
            dead: count(State::Dead),
            done: 0,
            cancelled: 0,
            oldest_due: since.map(Timestamp::from_millis),
            late: Duration::from_millis(since.map_or(0, |since| now.saturating_sub(since))),
        });
    }
    let near = now.saturating_add(millis_up(NEAR));
    let first = txn.tables.due.of_topic(shard, topic, near, 1)?.found;
    let oldest_due = first.first().map(|(at, _)| Timestamp::from_millis(*at));
    let Known { hold, ended: Ended { done, cancelled }, .. } = txn.tables.counts.known(shard, topic)?;
    let paused = hold != Hold::None;
    sum.add(&TopicCounts { paused, done, cancelled, oldest_due, ..TopicCounts::default() });
    Ok(sum)
}

/// When the first ready job of a lane was due. Its queue is nearly in order.
fn first_ready(txn: &Txn<'_>, lane: &str) -> Result<Option<u64>, StoreError> {
    let mut first = None;
    for (_, number) in txn.tables.ready.first(txn.shard(), lane, FIRST)? {
        let due = txn.tables.records.get(number)?.map(|job| job.due);
        first = [first, due].into_iter().flatten().min();
    }
    Ok(first)
}
