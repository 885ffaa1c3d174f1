//! Bulk operations: begins and lists them, lets a worker claim one, changes its jobs and counts them, and ends it.

use std::time::Duration;

use ringback_core::clock::{Timestamp, millis_up};
use ringback_core::job::JobKey;
use ringback_core::store_types::{
    Bulk, BulkAction, BulkId, BulkState, BulkStep, BulkTarget, DeadCursor, ENDED_BULK_RETENTION, Filter,
    MAX_BULKS, MAX_ENDED_BULKS, Move, Shard, StoreError, TakenBulk, Token, TransitionName, Wake, WorkerId,
};

use super::moves::{cancel, move_job, revive, still_dead};
use crate::error::Result;
use crate::queries::dead::numbers;
use crate::tables::{BulkRow, Stage};
use crate::txn::{KeepTombstones, Txn};
use crate::{ANY_SHARD, EmbeddedStore, TRANSITION_BYTES, answers};

/// About how many bytes a call writes.
const BYTES: usize = 512;
/// The worker of a bulk operation that no worker has claimed.
const NOBODY: [u8; 8] = [0; 8];

impl EmbeddedStore {
    pub async fn start_bulk(
        &self,
        id: BulkId,
        target: &BulkTarget,
        rate: u32,
    ) -> Result<Option<Bulk>, StoreError> {
        let (target, started, state) = (target.clone(), Timestamp::default(), BulkState::Running);
        let bulk = Bulk { id, target, rate, started, ended: None, state, changed: 0 };
        self.call(ANY_SHARD, BYTES, move |txn| begin(txn, bulk.clone())).await
    }

    pub async fn bulks(&self, id: Option<BulkId>) -> Result<Vec<Bulk>, StoreError> {
        let rows = self.call(ANY_SHARD, 0, move |txn| match id {
            Some(id) => Ok(txn.tables.bulks.get(id)?.into_iter().collect()),
            None => txn.tables.bulks.all(),
        });
        Ok(rows.await?.into_iter().map(|row| row.bulk).collect())
    }

    pub async fn take_bulk(&self, worker: WorkerId, ttl: Duration) -> Result<TakenBulk, StoreError> {
        self.call(ANY_SHARD, BYTES, move |txn| take(txn, worker.0, millis_up(ttl))).await
    }

    pub async fn keep_bulk(&self, id: BulkId, worker: WorkerId, ttl: Duration) -> Result<bool, StoreError> {
        self.call(ANY_SHARD, BYTES, move |txn| hold(txn, id, worker.0, millis_up(ttl))).await
    }

    pub async fn end_bulk(
        &self,
        id: BulkId,
        worker: Option<WorkerId>,
        state: BulkState,
    ) -> Result<Option<Bulk>, StoreError> {
        let worker = worker.map(|WorkerId(worker)| worker);
        self.call(ANY_SHARD, BYTES, move |txn| end(txn, id, worker, state)).await
    }

    pub async fn revive_many(
        &self,
        shard: Shard,
        id: BulkId,
        places: &[DeadCursor],
    ) -> Result<BulkStep, StoreError> {
        let (jobs, bytes) = (numbers(places), places.len() * TRANSITION_BYTES);
        let revived = self.call(shard, bytes, move |txn| revive_many(txn, id, &jobs)).await?;
        Ok(revived.map_or(BulkStep::Over, BulkStep::Jobs))
    }
}

impl EmbeddedStore {
    /// Changes those of the jobs that still match the filter, and counts them in the bulk operation.
    pub async fn change_many(
        &self,
        shard: Shard,
        id: BulkId,
        filter: &Filter,
        action: BulkAction,
        keys: &[JobKey],
    ) -> Result<BulkStep, StoreError> {
        let (keys, filter, keep) = (keys.to_vec(), filter.clone(), self.keep_tombstones());
        let bytes = keys.len() * TRANSITION_BYTES;
        let change = move |txn: &mut Txn<'_>| change_many(txn, id, &filter, action, &keys, keep);
        Ok(self.call(shard, bytes, change).await?.map_or(BulkStep::Over, BulkStep::Jobs))
    }
}

/// Stores a new bulk operation, wakes a carrier for it, and removes old ended ones. Returns the stored one if there is
/// one with its id, and `None` if too many are running.
fn begin(txn: &mut Txn<'_>, new: Bulk) -> Result<Option<Bulk>> {
    if let Some(known) = txn.tables.bulks.get(new.id)? {
        return Ok(Some(known.bulk));
    }
    let now = Timestamp::from_millis(txn.now());
    let (mut running, mut ended) = (0, Vec::new());
    for BulkRow { bulk, .. } in txn.tables.bulks.all()? {
        match bulk.ended {
            Some(at) => ended.push((at, bulk.id)),
            None => running += 1,
        }
    }
    if running >= MAX_BULKS {
        return Ok(None);
    }
    ended.sort_unstable_by_key(|(at, _)| std::cmp::Reverse(*at));
    for (n, (at, old)) in ended.into_iter().enumerate() {
        if n + 1 >= MAX_ENDED_BULKS || at.plus(ENDED_BULK_RETENTION) < now {
            txn.tables.bulks.remove(old)?;
        }
    }
    let bulk = Bulk { started: now, ..new };
    txn.tables.bulks.put(&BulkRow { bulk: bulk.clone(), worker: NOBODY, until: 0 })?;
    txn.wake(Wake::Bulk);
    Ok(Some(bulk))
}

fn take(txn: &mut Txn<'_>, worker: [u8; 8], ttl: u64) -> Result<TakenBulk> {
    let running = txn.tables.bulks.all()?.into_iter().filter(|row| row.bulk.ended.is_none());
    let Some(mut row) = running.min_by_key(|row| (row.until, row.bulk.id)) else {
        return Ok(TakenBulk::Nothing);
    };
    if row.until > txn.now() {
        return Ok(TakenBulk::Later(Duration::from_millis(row.until - txn.now())));
    }
    (row.worker, row.until) = (worker, txn.now().saturating_add(ttl));
    txn.tables.bulks.put(&row)?;
    Ok(TakenBulk::Bulk(row.bulk))
}

/// Extends a worker's claim by `ttl`, in ms; 0 releases the claim and wakes other carriers. Returns false if the bulk
/// operation is unknown or has ended, or the worker has not claimed it.
fn hold(txn: &mut Txn<'_>, id: BulkId, worker: [u8; 8], ttl: u64) -> Result<bool> {
    let held = txn.tables.bulks.running(id)?.filter(|row| row.worker == worker);
    let Some(mut row) = held else { return Ok(false) };
    if ttl > 0 {
        row.until = txn.now().saturating_add(ttl);
    } else {
        (row.worker, row.until) = (NOBODY, 0);
        txn.wake(Wake::Bulk);
    }
    txn.tables.bulks.put(&row)?;
    Ok(true)
}

/// Ends a bulk operation that has not ended; a `worker` only one that it has claimed. Returns the bulk operation
/// afterwards, ended or not; `None` if it is unknown.
fn end(txn: &mut Txn<'_>, id: BulkId, worker: Option<[u8; 8]>, state: BulkState) -> Result<Option<Bulk>> {
    let Some(mut row) = txn.tables.bulks.get(id)? else { return Ok(None) };
    if row.bulk.ended.is_none() && worker.is_none_or(|worker| worker == row.worker) {
        row.bulk.ended = Some(Timestamp::from_millis(txn.now()));
        row.bulk.state = state;
        txn.tables.bulks.put(&row)?;
    }
    Ok(Some(row.bulk))
}

/// Makes dead jobs, given by time of death and number, ready. Skips jobs that died at another time, and those whose
/// token is this bulk operation's id: it has revived them before. Returns how many; `None` if the operation has ended.
fn revive_many(txn: &mut Txn<'_>, id: BulkId, jobs: &[(u64, u64)]) -> Result<Option<u64>> {
    let Some(mut row) = txn.tables.bulks.running(id)? else { return Ok(None) };
    let mut revived = 0;
    txn.because(TransitionName::Revive, None);
    for (died, number) in jobs {
        if let Some(mut job) = still_dead(txn, *died, *number)?.filter(|job| job.token != Some(id.0)) {
            revive(txn, &mut job, id.0)?;
            revived += 1;
        }
    }
    if revived > 0 {
        row.bulk.changed += revived;
        txn.tables.bulks.put(&row)?;
    }
    Ok(Some(revived))
}

/// Applies an action to jobs. Skips those that have ended, do not match, have a requested cancel, or this operation's
/// id as token: it has moved them before. Returns how many it did not skip; `None` if the operation has ended.
fn change_many(
    txn: &mut Txn<'_>,
    id: BulkId,
    filter: &Filter,
    action: BulkAction,
    keys: &[JobKey],
    keep: KeepTombstones,
) -> Result<Option<u64>> {
    let Some(mut row) = txn.tables.bulks.running(id)? else { return Ok(None) };
    let mut changed = 0;
    for key in keys {
        let locator = key.locator().0;
        let Some(record) = txn.find(locator, keep)?.filter(|record| record.ended().is_none()) else {
            continue;
        };
        let is_moved =
            record.token == Some(id.0) || matches!(record.stage, Stage::Reserved { cancel: true, .. });
        let origin = record.origin.clone();
        if is_moved || !filter.matches(&answers::job(record, key.clone()), &origin) {
            continue;
        }
        changed += 1;
        let token = Token(id.0);
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
        row.bulk.changed += changed;
        txn.tables.bulks.put(&row)?;
    }
    Ok(Some(changed))
}
