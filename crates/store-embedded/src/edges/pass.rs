//! What all passes of a carrier share: the check that it still holds the shard, and the report of
//! when the next pass is needed.

use std::time::Duration;

use ringback_core::clock::millis_up;
use ringback_core::contract::{Epoch, Pass};

use crate::error::Result;
use crate::txn::Txn;
use crate::{EDGE_BYTES, EmbeddedStore};

/// The limits of one pass.
#[derive(Clone, Debug)]
pub(crate) struct PassLimits {
    epoch: Epoch,
    /// The most jobs.
    pub(crate) jobs: usize,
    /// The longest time for which the carrier will sleep afterwards, in ms.
    floor: u64,
    /// How long dead jobs are kept, in ms.
    pub(crate) retention: u64,
}

impl PassLimits {
    /// The limits of a pass, and about how many bytes it writes.
    pub(crate) fn new(store: &EmbeddedStore, epoch: &Epoch, limit: u32, floor: Duration) -> (Self, usize) {
        let jobs = limit as usize;
        let retention = millis_up(store.options.keep_dead);
        (Self { epoch: epoch.clone(), jobs, floor: millis_up(floor), retention }, jobs * EDGE_BYTES)
    }

    /// Whether another carrier has claimed the shard since.
    pub(crate) fn is_fenced(&self, txn: &Txn<'_>) -> bool {
        is_fenced(txn, &self.epoch)
    }

    /// Reports a pass that has moved this many jobs, and when each next one is due.
    pub(crate) fn report(&self, txn: &mut Txn<'_>, moved: u32, other: u32) -> Result<Pass> {
        let (shard, now_us) = (txn.shard(), txn.now_us());
        // In µs, so that the carrier does not sleep a part of a millisecond too long.
        let wait = |at: Option<u64>, more: u64| {
            at.map(|at| at.saturating_add(more).saturating_mul(1000).saturating_sub(now_us))
        };
        let due = wait(txn.tables.due.first(shard)?, 0);
        let lease = wait(txn.tables.leases.first(shard)?, 0);
        let dead = wait(txn.tables.dead.first(shard)?, self.retention);
        // Notices are published without a pass, so this does not count below.
        let notice = wait(txn.tables.outbox.first(shard)?, 0);
        let next = [due, lease, dead].into_iter().flatten().fold(self.floor.saturating_mul(1000), u64::min);
        txn.plan_pass(now_us.saturating_add(next) / 1000);
        let [next_due, next_lease, next_dead, next_notice] =
            [due, lease, dead, notice].map(|wait| wait.map(Duration::from_micros));
        Ok(Pass::Held { moved, other, next_due, next_lease, next_dead, next_notice })
    }
}

/// Whether another carrier has claimed the shard after this epoch. An epoch that was given back is
/// still the last one until the next claim.
pub(crate) fn is_fenced(txn: &Txn<'_>, epoch: &Epoch) -> bool {
    txn.row.epoch.to_string() != epoch.0
}
