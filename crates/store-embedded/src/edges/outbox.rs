//! tell: what was told leaves the outbox, what could not be told stays there for later; and how the
//! outbox is read.

use std::time::Duration;

use ringback_core::clock::millis_up;
use ringback_core::contract::{AckResult, Epoch, MAX_OUTBOX_BYTES, StoreError};

use super::is_fenced;
use crate::tables::{OutboxKey, OutboxRow};
use crate::txn::Txn;

/// Deaths that are to be told by now, and the time in ms.
pub(crate) fn outbox(txn: &Txn<'_>, limit: usize) -> Result<(Vec<OutboxRow>, u64), StoreError> {
    let now = txn.now();
    Ok((txn.tables.outbox.until(txn.shard(), now, limit, MAX_OUTBOX_BYTES)?, now))
}

pub(crate) fn tell(
    txn: &mut Txn<'_>,
    epoch: &Epoch,
    told: &[OutboxKey],
    later: &[(OutboxKey, Duration)],
) -> Result<AckResult, StoreError> {
    if is_fenced(txn, epoch) {
        return Ok(AckResult::Fenced);
    }
    for (key, after) in later {
        let at = txn.now_up().saturating_add(millis_up(*after));
        txn.tables.outbox.put_off(*key, at)?;
    }
    told.iter().try_for_each(|key| txn.tables.outbox.remove(*key))?;
    let first = txn.tables.outbox.first(txn.shard())?;
    let wait = |at: u64| Duration::from_micros(at.saturating_mul(1000).saturating_sub(txn.now_us()));
    Ok(AckResult::Held(first.map(wait)))
}
