//! purge, many at a time: dead → gone.

use ringback_core::contract::StoreError;

use crate::tables::{Record, Stage};
use crate::txn::Txn;

/// How many were purged. Jobs are named by time of death and number.
pub(crate) fn purge_many(txn: &mut Txn<'_>, jobs: &[(u64, u64)]) -> Result<u64, StoreError> {
    let mut purged = 0;
    for (died, number) in jobs {
        if let Some(job) = still_dead(txn, *died, *number)? {
            txn.purge(&job)?;
            purged += 1;
        }
    }
    Ok(purged)
}

/// A job of this shard that is dead since then still.
pub(crate) fn still_dead(txn: &Txn<'_>, died: u64, number: u64) -> Result<Option<Record>, StoreError> {
    let job = txn.tables.records.get(number)?;
    let is_still = |job: &Record| {
        job.shard == txn.shard() && matches!(job.stage, Stage::Dead { since, .. } if since == died)
    };
    Ok(job.filter(is_still))
}

/// How many were revived; none when the revival is over. One that it has revived before has its
/// token.
pub(crate) fn revive_many(
    txn: &mut Txn<'_>,
    revival: [u8; 8],
    jobs: &[(u64, u64)],
) -> Result<Option<u64>, StoreError> {
    let row = txn.tables.revivals.get(revival)?.filter(|row| row.end.is_none());
    let Some(mut row) = row else { return Ok(None) };
    let mut revived = 0;
    for (died, number) in jobs {
        let job = still_dead(txn, *died, *number)?.filter(|job| job.token != Some(revival));
        if let Some(mut job) = job {
            (job.token, job.failures, job.lost) = (Some(revival), 0, 0);
            txn.make_ready(&mut job)?;
            revived += 1;
        }
    }
    if revived > 0 {
        row.revived += revived;
        txn.tables.revivals.put(revival, &row)?;
    }
    Ok(Some(revived))
}
