//! Bulk operations: begins one, lets a worker take and hold it, changes its jobs, and ends it. A row
//! per bulk operation counts the jobs in the transaction that changes them.

use std::time::Duration;

use ringback_core::clock::{Timestamp, millis_up};
use ringback_core::contract::{
    Bulk, BulkAction, BulkId, BulkState, BulkStep, BulkTarget, BulkWork, DeadCursor, ENDED_BULK_RETENTION,
    EdgeName, Filter, MAX_BULKS, MAX_ENDED_BULKS, Move, Shard, StoreError, StoredBulk, TakenBulk, Token,
    Wake, WorkerId,
};
use ringback_core::job::JobKey;

use super::moves::{cancel, move_job, revive, still_dead};
use crate::error::Result;
use crate::queries::dead::numbers;
use crate::tables::{BulkEnd, BulkRow, Stage};
use crate::txn::{KeepTombstones, Txn};
use crate::{ANY_SHARD, EDGE_BYTES, EmbeddedStore, answers};

/// About how many bytes a call writes.
const BYTES: usize = 512;
/// The worker of a bulk operation that nobody holds.
const NOBODY: [u8; 8] = [0; 8];

impl EmbeddedStore {
    pub async fn start_bulk(
        &self,
        id: BulkId,
        target: &BulkTarget,
        rate: u32,
    ) -> Result<Option<StoredBulk>, StoreError> {
        let work = BulkWork::new(target, rate);
        let new = BulkRow { work, started: 0, end: None, jobs: 0, worker: NOBODY, until: 0 };
        let begun = self.call(ANY_SHARD, BYTES, move |txn| begin(txn, id.0, new.clone())).await?;
        begun.map(|bulk| answer(id, bulk)).transpose()
    }

    pub async fn bulks(&self, id: Option<BulkId>) -> Result<Vec<StoredBulk>, StoreError> {
        let rows = self.call(ANY_SHARD, 0, move |txn| match id {
            Some(BulkId(id)) => Ok(txn.tables.bulks.get(id)?.map(|bulk| (id, bulk)).into_iter().collect()),
            None => txn.tables.bulks.all(),
        });
        let mut all = Vec::new();
        for (id, bulk) in rows.await? {
            match answer(BulkId(id), bulk) {
                Ok(bulk) => all.push(bulk),
                Err(error) => tracing::error!(%error, "a bulk operation cannot be read and is skipped"),
            }
        }
        Ok(all)
    }

    pub async fn take_bulk(&self, worker: WorkerId, ttl: Duration) -> Result<TakenBulk, StoreError> {
        match self.call(ANY_SHARD, BYTES, move |txn| take(txn, worker.0, millis_up(ttl))).await? {
            Free::Now(id, bulk) => answer(BulkId(id), bulk).map(|(taken, _)| TakenBulk::Bulk(taken)),
            Free::Later(wait) => Ok(TakenBulk::Later(Duration::from_millis(wait))),
            Free::Never => Ok(TakenBulk::Nothing),
        }
    }

    pub async fn keep_bulk(&self, id: BulkId, worker: WorkerId, ttl: Duration) -> Result<bool, StoreError> {
        self.call(ANY_SHARD, BYTES, move |txn| hold(txn, id.0, worker.0, millis_up(ttl))).await
    }

    pub async fn end_bulk(
        &self,
        id: BulkId,
        worker: Option<WorkerId>,
        state: BulkState,
    ) -> Result<Option<StoredBulk>, StoreError> {
        let to = match state {
            BulkState::Done => BulkEnd::Done,
            BulkState::Stopped | BulkState::Running => BulkEnd::Stopped,
        };
        let worker = worker.map(|WorkerId(worker)| worker);
        let ended = self.call(ANY_SHARD, BYTES, move |txn| end(txn, id.0, worker, to)).await?;
        ended.map(|bulk| answer(id, bulk)).transpose()
    }

    pub async fn revive_many(
        &self,
        shard: Shard,
        id: BulkId,
        places: &[DeadCursor],
    ) -> Result<BulkStep, StoreError> {
        let (jobs, bytes) = (numbers(places), places.len() * EDGE_BYTES);
        let revived = self.call(shard, bytes, move |txn| revive_many(txn, id.0, &jobs)).await?;
        Ok(revived.map_or(BulkStep::Over, BulkStep::Jobs))
    }
}

impl EmbeddedStore {
    /// Changes those of the jobs that fit a filter.
    pub async fn change_many(
        &self,
        shard: Shard,
        id: BulkId,
        filter: &Filter,
        action: BulkAction,
        keys: &[JobKey],
    ) -> Result<BulkStep, StoreError> {
        let (keys, filter, keep) = (keys.to_vec(), filter.clone(), self.keep_tombstones());
        let bytes = keys.len() * EDGE_BYTES;
        let change = move |txn: &mut Txn<'_>| change_many(txn, id, &filter, action, &keys, keep);
        Ok(self.call(shard, bytes, change).await?.map_or(BulkStep::Over, BulkStep::Jobs))
    }
}

fn answer(id: BulkId, row: BulkRow) -> Result<StoredBulk, StoreError> {
    let state = match row.end {
        None => BulkState::Running,
        Some(BulkEnd::Done(_)) => BulkState::Done,
        Some(BulkEnd::Stopped(_)) => BulkState::Stopped,
    };
    let jobs = row.jobs;
    let bulk = Bulk {
        id,
        rate: row.work.rate,
        target: row.work.target()?,
        started: Timestamp::from_millis(row.started),
        ended: row.end.map(|end| Timestamp::from_millis(end.at())),
        state,
        changed: jobs,
    };
    Ok((bulk, Some(jobs)))
}

/// Stores a new bulk operation, and removes old ones. Returns `None` if too many bulk operations are running.
fn begin(txn: &mut Txn<'_>, id: [u8; 8], mut new: BulkRow) -> Result<Option<BulkRow>> {
    if let Some(known) = txn.tables.bulks.get(id)? {
        return Ok(Some(known));
    }
    let (mut ended, running): (Vec<_>, Vec<_>) =
        txn.tables.bulks.all()?.into_iter().partition(|(_, bulk)| bulk.end.is_some());
    if running.len() >= MAX_BULKS {
        return Ok(None);
    }
    let ended_at = |bulk: &BulkRow| bulk.end.map_or(0, BulkEnd::at);
    ended.sort_unstable_by_key(|(_, bulk)| std::cmp::Reverse(ended_at(bulk)));
    for (n, (old, bulk)) in ended.iter().enumerate() {
        if n + 1 >= MAX_ENDED_BULKS
            || ended_at(bulk).saturating_add(millis_up(ENDED_BULK_RETENTION)) < txn.now()
        {
            txn.tables.bulks.remove(*old)?;
        }
    }
    new.started = txn.now();
    txn.tables.bulks.put(id, &new)?;
    txn.wake(Wake::Bulk);
    Ok(Some(new))
}

/// When a bulk operation is free to be taken.
enum Free {
    /// It is taken now.
    Now([u8; 8], BulkRow),
    /// After this many ms.
    Later(u64),
    /// No bulk operation is running.
    Never,
}

fn take(txn: &mut Txn<'_>, worker: [u8; 8], ttl: u64) -> Result<Free> {
    let running = txn.tables.bulks.all()?.into_iter().filter(|(_, bulk)| bulk.end.is_none());
    let Some((id, mut bulk)) = running.min_by_key(|(id, bulk)| (bulk.until, *id)) else {
        return Ok(Free::Never);
    };
    if bulk.until > txn.now() {
        return Ok(Free::Later(bulk.until - txn.now()));
    }
    (bulk.worker, bulk.until) = (worker, txn.now().saturating_add(ttl));
    txn.tables.bulks.put(id, &bulk)?;
    Ok(Free::Now(id, bulk))
}

/// Extends a worker's hold; a `ttl` of zero gives it up. Returns false if the bulk operation has ended or
/// another worker holds it.
fn hold(txn: &mut Txn<'_>, id: [u8; 8], worker: [u8; 8], ttl: u64) -> Result<bool> {
    let held = txn.tables.bulks.running(id)?.filter(|bulk| bulk.worker == worker);
    let Some(mut bulk) = held else { return Ok(false) };
    if ttl > 0 {
        bulk.until = txn.now().saturating_add(ttl);
    } else {
        (bulk.worker, bulk.until) = (NOBODY, 0);
        txn.wake(Wake::Bulk);
    }
    txn.tables.bulks.put(id, &bulk)?;
    Ok(true)
}

/// Ends a bulk operation. A `worker` may only end one that it holds. Returns the bulk operation afterwards.
fn end(
    txn: &mut Txn<'_>,
    id: [u8; 8],
    worker: Option<[u8; 8]>,
    to: fn(u64) -> BulkEnd,
) -> Result<Option<BulkRow>> {
    let Some(mut bulk) = txn.tables.bulks.get(id)? else { return Ok(None) };
    if bulk.end.is_none() && worker.is_none_or(|worker| worker == bulk.worker) {
        bulk.end = Some(to(txn.now()));
        txn.tables.bulks.put(id, &bulk)?;
    }
    Ok(Some(bulk))
}

/// Returns how many jobs were made ready; `None` if the bulk operation has ended. A job that this bulk operation
/// has made ready before has its id as token, and is skipped.
fn revive_many(txn: &mut Txn<'_>, id: [u8; 8], jobs: &[(u64, u64)]) -> Result<Option<u64>> {
    let Some(mut bulk) = txn.tables.bulks.running(id)? else { return Ok(None) };
    let mut revived = 0;
    txn.because(EdgeName::Redrive, None);
    for (died, number) in jobs {
        if let Some(mut job) = still_dead(txn, *died, *number)?.filter(|job| job.token != Some(id)) {
            revive(txn, &mut job, id)?;
            revived += 1;
        }
    }
    if revived > 0 {
        bulk.jobs += revived;
        txn.tables.bulks.put(id, &bulk)?;
    }
    Ok(Some(revived))
}

/// Returns how many jobs were changed; `None` if the bulk operation has ended. A job that it has moved before has its id as
/// token, and is passed over.
fn change_many(
    txn: &mut Txn<'_>,
    BulkId(id): BulkId,
    filter: &Filter,
    action: BulkAction,
    keys: &[JobKey],
    keep: KeepTombstones,
) -> Result<Option<u64>> {
    let Some(mut bulk) = txn.tables.bulks.running(id)? else { return Ok(None) };
    let mut changed = 0;
    for key in keys {
        let locator = key.locator().0;
        let Some(record) = txn.find(locator, keep)?.filter(|record| record.ended().is_none()) else {
            continue;
        };
        let is_moved =
            record.token == Some(id) || matches!(record.stage, Stage::Reserved { cancel: true, .. });
        let origin = record.origin.clone();
        if is_moved || !filter.matches(&answers::job(record, key.clone()), &origin) {
            continue;
        }
        changed += 1;
        let token = Token(id);
        let what = match action {
            BulkAction::Cancel => {
                cancel(txn, locator, keep)?;
                continue;
            }
            BulkAction::Run => Move::Run(token),
            BulkAction::Revive => Move::Revive(token),
            BulkAction::Reschedule(due) => Move::Reschedule(due, token),
            BulkAction::Purge => Move::Purge,
        };
        move_job(txn, locator, what, keep)?;
    }
    if changed > 0 {
        bulk.jobs += changed;
        txn.tables.bulks.put(id, &bulk)?;
    }
    Ok(Some(changed))
}
