//! purge of many jobs: dead → gone. Jobs are named by time of death and number.

use ringback_core::contract::{DeadCursor, Shard, StoreError};

use crate::error::Result;
use crate::queries::dead::numbers;
use crate::tables::{Record, Stage};
use crate::txn::Txn;
use crate::{EDGE_BYTES, EmbeddedStore};

impl EmbeddedStore {
    pub async fn purge_many(&self, shard: Shard, places: &[DeadCursor]) -> Result<u64, StoreError> {
        let (jobs, bytes) = (numbers(places), places.len() * EDGE_BYTES);
        self.call(shard, bytes, move |txn| purge_many(txn, &jobs)).await
    }
}

/// Returns how many were purged.
fn purge_many(txn: &mut Txn<'_>, jobs: &[(u64, u64)]) -> Result<u64> {
    let mut purged = 0;
    for (died, number) in jobs {
        if let Some(job) = still_dead(txn, *died, *number)? {
            txn.purge(&job)?;
            purged += 1;
        }
    }
    Ok(purged)
}

/// A job of this shard, if it has been dead since that time.
pub(crate) fn still_dead(txn: &Txn<'_>, died: u64, number: u64) -> Result<Option<Record>> {
    let is_still = |job: &Record| {
        job.shard == txn.shard() && matches!(job.stage, Stage::Dead { since, .. } if since == died)
    };
    Ok(txn.tables.records.get(number)?.filter(is_still))
}
