//! pause: nothing of a topic is handed over any more. resume: the end of that; lanes that were
//! parked get their turns again.

use ringback_core::contract::{StoreError, TopicCapacity};

use crate::tables::{Hold, PULL};
use crate::txn::Txn;

/// False when it would be one topic too many, and that matters.
pub(crate) fn pause(txn: &mut Txn<'_>, topic: &str, room: TopicCapacity) -> Result<bool, StoreError> {
    let shard = txn.shard();
    if room == TopicCapacity::Needed && txn.tables.counts.are_full(shard, topic)? {
        return Ok(false);
    }
    txn.tables.due.know(shard, topic)?;
    txn.tables.counts.set_hold(shard, topic, Hold::Paused)?;
    Ok(true)
}

/// None for a topic that is not known, else whether there are more lanes to be given their turns.
pub(crate) fn resume(txn: &mut Txn<'_>, topic: &str, most: usize) -> Result<Option<bool>, StoreError> {
    let shard = txn.shard();
    if !txn.tables.due.knows(shard, topic)? {
        return Ok(None);
    }
    if txn.tables.counts.known(shard, topic)?.hold == Hold::None {
        return Ok(Some(false));
    }
    let lanes = txn.tables.ready.parked(shard, topic, most)?;
    for lane in &lanes {
        let turn = if lane.ends_with(' ') { PULL } else { txn.turn() };
        txn.tables.ready.set_turn(shard, lane, Some(turn))?;
        txn.wake(lane);
    }
    let is_more = lanes.len() == most;
    txn.tables.counts.set_hold(shard, topic, if is_more { Hold::Resuming } else { Hold::None })?;
    Ok(Some(is_more))
}
