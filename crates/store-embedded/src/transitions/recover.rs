//! recover: reserved with an expired lease → ready again at once; dead as `lost` after too many expired leases in a row;
//! cancelled if that was requested. Other pull jobs stay reserved: the caller settles them, and gets them again a second
//! later if they are still reserved.

use ringback_core::limits::MAX_LOST;
use ringback_core::state::State;
use ringback_core::store_types::{
    AttemptOutcome, Epoch, Pass, PassLimits, Recovered, Shard, StoreError, TransitionName,
};

use super::carriers::PassRequest;
use super::settle::LOST;
use crate::error::Result;
use crate::tables::{QueueEnd, Stage, StoredJob};
use crate::txn::state_changes::{End, To};
use crate::txn::{KeepTombstones, Txn};
use crate::{EmbeddedStore, answers};

/// After how long the expired lease of a pull job is checked again, in ms.
const AGAIN: u64 = 1000;

impl EmbeddedStore {
    pub async fn recover(
        &self,
        shard: Shard,
        epoch: &Epoch,
        limits: PassLimits,
    ) -> Result<Recovered, StoreError> {
        let ((limits, bytes), keep) = (PassRequest::new(self, epoch, limits), self.keep_tombstones());
        let (pass, expired) = self.call(shard, bytes, move |txn| recover(txn, &limits, keep)).await?;
        let expired = expired.iter().filter_map(|(job, body)| answers::expired_lease(shard, job, body));
        Ok(Recovered { pass, expired: expired.collect() })
    }
}

/// Makes a pass. Returns its report, and the pull jobs whose leases have expired, without those that were cancelled.
fn recover(txn: &mut Txn<'_>, limits: &PassRequest, keep: KeepTombstones) -> Result<(Pass, Vec<StoredJob>)> {
    if limits.is_fenced(txn) {
        return Ok((Pass::Fenced, Vec::new()));
    }
    let (shard, now) = (txn.shard(), txn.now());
    let (mut recovered, mut lost, mut expired) = (0, 0, Vec::new());
    txn.because(TransitionName::Recover, Some("lease expired"));
    for (at, number) in txn.tables.leases.until(shard, now, limits.jobs)? {
        let job = txn.tables.records.get(number)?.filter(|job| job.state() == State::Reserved);
        let Some(mut job) = job else {
            txn.tables.leases.remove(shard, at, number)?;
            continue;
        };
        let cancel = matches!(job.stage, Stage::Reserved { cancel: true, .. });
        if job.lane().is_pull() && !cancel {
            txn.postpone_recovery(&mut job, now + AGAIN)?;
            expired.extend(txn.tables.records.with_body(job)?);
            continue;
        }
        (job.lost, job.lease_lost) = (job.lost + 1, true);
        txn.publish_attempt(&job, AttemptOutcome::Lost, None, None)?;
        if cancel {
            let settled = job.settled;
            txn.finish(job, End::Cancelled, settled)?;
        } else if job.lost >= MAX_LOST {
            txn.die(&mut job, LOST.into())?;
            lost += 1;
        } else {
            txn.enter(&mut job, To::Ready(QueueEnd::Front))?;
            recovered += 1;
        }
    }
    txn.evict_tombstones(keep)?;
    Ok((limits.report(txn, recovered, lost)?, expired))
}
