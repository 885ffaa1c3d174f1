//! cancel: delayed, ready, dead → cancelled; reserved → a request that the settle obeys.
//! renew: reserved → reserved with a later deadline.

use ringback_core::contract::{Cancelled, Receipt, StoreError};

use crate::tables::{Record, Stage};
use crate::txn::{End, Keep, To, Txn};

pub(crate) fn cancel(txn: &mut Txn<'_>, locator: [u8; 12], keep: Keep) -> Result<Cancelled, StoreError> {
    let Some(mut job) = txn.known(locator, keep)? else { return Ok(Cancelled::Unknown) };
    match job.stage {
        Stage::Done { .. } => Ok(Cancelled::TooLate),
        Stage::Cancelled { doubt, .. } => Ok(Cancelled::Cancelled { in_flight_unknown: doubt }),
        Stage::Reserved { deadline, ref mut cancel, .. } => {
            if !std::mem::replace(cancel, true) {
                txn.tables.records.put(&job)?;
            }
            Ok(Cancelled::Requested { in_flight_unknown: deadline <= txn.now() })
        }
        Stage::Delayed | Stage::Ready { .. } | Stage::Dead { .. } => {
            // A lease that ran out unsettled leaves a call that may still be on its way.
            let (doubt, settled) = (job.lost > 0, job.settled);
            txn.finish(job, End::Cancelled, settled)?;
            txn.trim(keep)?;
            Ok(Cancelled::Cancelled { in_flight_unknown: doubt })
        }
    }
}

/// False when the receipt is not the job's current one. `by` is in ms.
pub(crate) fn renew(
    txn: &mut Txn<'_>,
    locator: [u8; 12],
    receipt: Receipt,
    by: u64,
) -> Result<bool, StoreError> {
    let Some(mut job) = txn.tables.records.find(locator)? else { return Ok(false) };
    match job.stage {
        Stage::Reserved { lease, bits, deadline, cancel, .. }
            if lease == receipt.number && bits == receipt.bits =>
        {
            let later = deadline.max(txn.now_up().saturating_add(by));
            txn.enter(&mut job, To::Reserved { lease, bits, deadline: later })?;
            keep_mark(txn, &mut job, cancel)?;
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// A lease begins without a cancel mark; this one goes on with its own.
fn keep_mark(txn: &mut Txn<'_>, job: &mut Record, mark: bool) -> Result<(), StoreError> {
    if let Stage::Reserved { cancel, .. } = &mut job.stage
        && mark
    {
        *cancel = true;
        txn.tables.records.put(job)?;
    }
    Ok(())
}
