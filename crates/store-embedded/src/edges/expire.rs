//! expire: dead past its retention → gone.

use ringback_core::contract::StoreError;
use ringback_core::state::State;

use super::{Passed, Round, is_fenced, rest};
use crate::txn::Txn;

/// None when the carrier is fenced.
pub(crate) fn expire(txn: &mut Txn<'_>, round: &Round) -> Result<Option<Passed>, StoreError> {
    if is_fenced(txn, &round.epoch) {
        return Ok(None);
    }
    let shard = txn.shard();
    let mut expired = 0;
    if let Some(until) = txn.now().checked_sub(round.retention) {
        for (since, number) in txn.tables.dead.until(shard, until, round.limit)? {
            let job = txn.tables.records.get(number)?.filter(|job| job.state() == State::Dead);
            txn.tables.dead.remove(shard, since, number)?;
            if let Some(job) = job {
                txn.purge(&job)?;
                expired += 1;
            }
        }
    }
    rest(txn, round, expired, 0).map(Some)
}
