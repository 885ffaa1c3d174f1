//! renew: reserved → reserved with a later deadline, for push and pull jobs alike.

use std::time::Duration;

use ringback_core::clock::{Timestamp, millis_up};
use ringback_core::store_types::{Receipt, StoreError, TransitionName};

use crate::error::Result;
use crate::tables::Stage;
use crate::txn::Txn;
use crate::txn::state_changes::To;
use crate::{EmbeddedStore, TRANSITION_BYTES};

impl EmbeddedStore {
    /// Extends a lease to `by` from now, but at most to `within` from when it was granted; never shortens it. Returns the
    /// deadline, or `None` if the receipt is not current, or the lease has expired and may not last longer.
    pub async fn renew(
        &self,
        receipt: &Receipt,
        by: Duration,
        within: Option<Duration>,
    ) -> Result<Option<Timestamp>, StoreError> {
        let (receipt, by, within) = (*receipt, millis_up(by), within.map(millis_up));
        let deadline =
            self.call(receipt.shard, TRANSITION_BYTES, move |txn| renew(txn, &receipt, by, within));
        Ok(deadline.await?.map(Timestamp::from_millis))
    }
}

/// See [`EmbeddedStore::renew`]. Times are in ms. A requested cancel stays requested.
fn renew(txn: &mut Txn<'_>, receipt: &Receipt, by: u64, within: Option<u64>) -> Result<Option<u64>> {
    let Some(mut job) = txn.tables.records.find(receipt.locator.0)? else { return Ok(None) };
    let Stage::Reserved { deadline, cancel: was_cancelled, .. } = job.stage else { return Ok(None) };
    if job.lease() != Some(receipt.lease) {
        return Ok(None);
    }
    // The number of a lease is the time at which it was granted.
    let latest = within.map_or(u64::MAX, |within| (receipt.lease.number / 1000).saturating_add(within));
    let later = deadline.max(txn.now_up().saturating_add(by).min(latest));
    if later <= txn.now() {
        return Ok(None);
    }
    txn.because(TransitionName::Renew, None);
    txn.enter(&mut job, To::Reserved(receipt.lease, later))?;
    // A new lease has no request to cancel; this one keeps its own.
    if let Stage::Reserved { cancel, .. } = &mut job.stage
        && was_cancelled
    {
        *cancel = true;
        txn.tables.records.put(&job)?;
    }
    Ok(Some(later))
}
