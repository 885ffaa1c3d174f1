//! promote: delayed and due → ready. Topics take turns; none takes more than its share.

use ringback_core::contract::{EventKind, StoreError};
use ringback_core::state::State;

use super::{Passed, Round, is_fenced, rest};
use crate::tables::{First, Queue};
use crate::txn::{To, Txn};

/// The most topics of a pass.
const TOPICS: usize = 64;

/// None when the carrier is fenced.
pub(crate) fn promote(txn: &mut Txn<'_>, round: &Round) -> Result<Option<Passed>, StoreError> {
    if is_fenced(txn, &round.epoch) {
        return Ok(None);
    }
    let (shard, now) = (txn.shard(), txn.now());
    let topics = txn.tables.due.topics(shard, now, TOPICS)?;
    let share = round.limit.div_ceil(topics.len().max(1));
    let (mut left, mut moved, mut stale) = (round.limit, 0, 0);
    for topic in topics {
        let take = share.min(left);
        if take == 0 {
            break;
        }
        let First { found, following } = txn.tables.due.of_topic(shard, &topic, now, take)?;
        left -= found.len();
        for (due, number) in found {
            match txn.tables.records.get(number)? {
                Some(mut job) if job.state() == State::Delayed && job.due == due => {
                    txn.tell_event(&job, || EventKind::Promoted)?;
                    txn.enter(&mut job, To::Ready(Queue::Back))?;
                    moved += 1;
                }
                _ => {
                    txn.tables.due.remove(shard, &topic, due, number)?;
                    stale += 1;
                }
            }
        }
        // A topic that is still due goes behind the others that are.
        txn.tables.due.set_turn(shard, &topic, following.map(|at| at.max(now)))?;
    }
    rest(txn, round, moved, stale).map(Some)
}
