//! renew: reserved → reserved with a later deadline, for push and pull jobs alike.

use std::time::Duration;

use ringback_core::clock::{Timestamp, millis_up};
use ringback_core::contract::{Lease, PullReceipt, Receipt, Renewed, StoreError};
use tokio::time::Instant;

use crate::error::Result;
use crate::tables::Stage;
use crate::txn::Txn;
use crate::txn::transitions::To;
use crate::{EDGE_BYTES, EmbeddedStore};

impl EmbeddedStore {
    pub async fn renew(&self, lease: &mut Lease, by: Duration) -> Result<Renewed, StoreError> {
        let asked = Instant::now();
        let (locator, receipt, ms) = (lease.grant().locator.0, lease.grant().receipt, millis_up(by));
        let renewed = self.call(lease.grant().shard, EDGE_BYTES, move |txn| renew(txn, locator, receipt, ms));
        if renewed.await?.is_none() {
            return Ok(Renewed::Stale);
        }
        lease.renewed(asked, by);
        Ok(Renewed::Extended)
    }

    pub async fn renew_receipt(
        &self,
        receipt: &PullReceipt,
        by: Duration,
    ) -> Result<Option<Timestamp>, StoreError> {
        let (locator, lease, ms) = (receipt.locator.0, receipt.lease, millis_up(by));
        let deadline = self.call(receipt.shard, EDGE_BYTES, move |txn| renew(txn, locator, lease, ms));
        Ok(deadline.await?.map(Timestamp::from_millis))
    }
}

/// Returns the new deadline; `None` if the receipt is not the job's current one. Times are in ms.
fn renew(txn: &mut Txn<'_>, locator: [u8; 12], receipt: Receipt, by: u64) -> Result<Option<u64>> {
    let Some(mut job) = txn.tables.records.find(locator)? else { return Ok(None) };
    let Stage::Reserved { deadline, cancel: was_cancelled, .. } = job.stage else { return Ok(None) };
    if job.receipt() != Some(receipt) {
        return Ok(None);
    }
    let later = deadline.max(txn.now_up().saturating_add(by));
    txn.enter(&mut job, To::Reserved(receipt, later))?;
    // A new lease has no request to cancel; this one keeps its own.
    if let Stage::Reserved { cancel, .. } = &mut job.stage
        && was_cancelled
    {
        *cancel = true;
        txn.tables.records.put(&job)?;
    }
    Ok(Some(later))
}
