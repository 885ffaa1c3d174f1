//! expire: removes dead jobs that were kept long enough.

use std::time::Duration;

use ringback_core::contract::{Epoch, Pass, Shard, StoreError};
use ringback_core::state::State;

use super::pass::PassLimits;
use crate::EmbeddedStore;
use crate::error::Result;
use crate::txn::Txn;

impl EmbeddedStore {
    pub async fn evict(
        &self,
        shard: Shard,
        epoch: &Epoch,
        limit: u32,
        floor: Duration,
    ) -> Result<Pass, StoreError> {
        let (limits, bytes) = PassLimits::new(self, epoch, limit, floor);
        self.call(shard, bytes, move |txn| evict(txn, &limits)).await
    }
}

fn evict(txn: &mut Txn<'_>, limits: &PassLimits) -> Result<Pass> {
    if limits.is_fenced(txn) {
        return Ok(Pass::Fenced);
    }
    let shard = txn.shard();
    let mut evicted = 0;
    if let Some(until) = txn.now().checked_sub(limits.retention) {
        for (since, number) in txn.tables.dead.until(shard, until, limits.jobs)? {
            let job = txn.tables.records.get(number)?.filter(|job| job.state() == State::Dead);
            txn.tables.dead.remove(shard, since, number)?;
            if let Some(job) = job {
                txn.purge(&job)?;
                evicted += 1;
            }
        }
    }
    limits.report(txn, evicted, 0)
}
