//! cancel: delayed, ready, dead → cancelled; a reserved job is marked, and its settle cancels it.

use ringback_core::contract::{Cancelled, Shard, StoreError};
use ringback_core::job::JobKey;

use crate::error::Result;
use crate::tables::Stage;
use crate::txn::transitions::End;
use crate::txn::{KeepTombstones, Txn};
use crate::{EDGE_BYTES, EmbeddedStore};

impl EmbeddedStore {
    pub async fn cancel(&self, shard: Shard, key: &JobKey) -> Result<Cancelled, StoreError> {
        let (locator, keep) = (key.locator().0, self.keep_tombstones());
        self.call(shard, EDGE_BYTES, move |txn| cancel(txn, locator, keep)).await
    }
}

fn cancel(txn: &mut Txn<'_>, locator: [u8; 12], keep: KeepTombstones) -> Result<Cancelled> {
    let Some(mut job) = txn.find(locator, keep)? else { return Ok(Cancelled::Unknown) };
    match job.stage {
        Stage::Done { .. } => Ok(Cancelled::TooLate),
        Stage::Cancelled { maybe_in_flight, .. } => {
            Ok(Cancelled::Cancelled { in_flight_unknown: maybe_in_flight })
        }
        Stage::Reserved { deadline, ref mut cancel, .. } => {
            if !std::mem::replace(cancel, true) {
                txn.tables.records.put(&job)?;
            }
            Ok(Cancelled::Requested { in_flight_unknown: deadline <= txn.now() })
        }
        Stage::Delayed | Stage::Ready { .. } | Stage::Dead { .. } => {
            // After an expired lease the request may still be on its way.
            let (in_flight_unknown, settled) = (job.lost > 0, job.settled);
            txn.finish(job, End::Cancelled, settled)?;
            txn.evict_tombstones(keep)?;
            Ok(Cancelled::Cancelled { in_flight_unknown })
        }
    }
}
