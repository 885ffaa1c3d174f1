//! pause: stops the delivery of a topic. resume: ends the pause, and gives the lanes that were parked
//! their turns again.

use ringback_core::contract::{MAX_RESUMED_LANES, Shard, StoreError, TopicCapacity};
use ringback_core::job::Topic;

use crate::error::Result;
use crate::tables::Pause;
use crate::txn::Txn;
use crate::{EDGE_BYTES, EmbeddedStore};

impl EmbeddedStore {
    /// Returns false if the pause would exceed the limit of topics, and `room` says that this counts.
    pub async fn pause(&self, shard: Shard, topic: &Topic, room: TopicCapacity) -> Result<bool, StoreError> {
        let topic = topic.clone();
        self.call(shard, EDGE_BYTES, move |txn| pause(txn, topic.as_str(), room)).await
    }

    /// Returns whether the topic is known in this shard.
    pub async fn resume(&self, shard: Shard, topic: &Topic) -> Result<bool, StoreError> {
        loop {
            let topic = topic.clone();
            let resume = move |txn: &mut Txn<'_>| resume(txn, topic.as_str());
            match self.call(shard, MAX_RESUMED_LANES * 64, resume).await? {
                Some(true) => {}
                is_more => return Ok(is_more.is_some()),
            }
        }
    }
}

fn pause(txn: &mut Txn<'_>, topic: &str, room: TopicCapacity) -> Result<bool> {
    let shard = txn.shard();
    if room == TopicCapacity::Needed && txn.tables.counts.is_full(shard, topic)? {
        return Ok(false);
    }
    txn.tables.due.register(shard, topic)?;
    txn.tables.counts.set_pause(shard, topic, Pause::Paused)?;
    Ok(true)
}

/// Returns whether more lanes are parked; `None` if the topic is not known.
fn resume(txn: &mut Txn<'_>, topic: &str) -> Result<Option<bool>> {
    let shard = txn.shard();
    if !txn.tables.due.is_known(shard, topic)? {
        return Ok(None);
    }
    if !txn.tables.counts.topic(shard, topic)?.is_paused() {
        return Ok(Some(false));
    }
    let lanes = txn.tables.ready.parked(shard, topic, MAX_RESUMED_LANES)?;
    for lane in &lanes {
        txn.give_turn(lane)?;
    }
    let is_more = lanes.len() == MAX_RESUMED_LANES;
    txn.tables.counts.set_pause(shard, topic, if is_more { Pause::Resuming } else { Pause::None })?;
    Ok(Some(is_more))
}
