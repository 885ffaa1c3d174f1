//! Redrives: begins one, lets a worker take and hold it, makes its jobs ready, and ends it. A row
//! per redrive counts the jobs in the transaction that makes them ready.

use std::time::Duration;

use ringback_core::clock::{Timestamp, millis_up};
use ringback_core::contract::{
    DeadCursor, DeadFilter, ENDED_REDRIVE_RETENTION, EdgeName, MAX_ENDED_REDRIVES, MAX_REDRIVES, Redrive,
    RedriveId, RedriveJob, RedriveState, Redriven, Shard, StoreError, StoredRedrive, TakenRedrive, Wake,
    WorkerId,
};

use super::moves::{revive, still_dead};
use crate::error::Result;
use crate::queries::dead::numbers;
use crate::tables::{RedriveEnd, RedriveRow};
use crate::txn::Txn;
use crate::{ANY_SHARD, EDGE_BYTES, EmbeddedStore};

/// About how many bytes a call writes.
const BYTES: usize = 512;
/// The worker of a redrive that nobody holds.
const NOBODY: [u8; 8] = [0; 8];

impl EmbeddedStore {
    pub async fn start_redrive(
        &self,
        id: RedriveId,
        filter: &DeadFilter,
        rate: u32,
    ) -> Result<Option<StoredRedrive>, StoreError> {
        let work = RedriveJob::new(filter, rate);
        let new = RedriveRow { work, started: 0, end: None, jobs: 0, worker: NOBODY, until: 0 };
        let begun = self.call(ANY_SHARD, BYTES, move |txn| begin(txn, id.0, new.clone())).await?;
        begun.map(|redrive| answer(id, redrive)).transpose()
    }

    pub async fn redrives(&self, id: Option<RedriveId>) -> Result<Vec<StoredRedrive>, StoreError> {
        let rows = self.call(ANY_SHARD, 0, move |txn| match id {
            Some(RedriveId(id)) => {
                Ok(txn.tables.redrives.get(id)?.map(|redrive| (id, redrive)).into_iter().collect())
            }
            None => txn.tables.redrives.all(),
        });
        rows.await?.into_iter().map(|(id, redrive)| answer(RedriveId(id), redrive)).collect()
    }

    pub async fn take_redrive(&self, worker: WorkerId, ttl: Duration) -> Result<TakenRedrive, StoreError> {
        match self.call(ANY_SHARD, BYTES, move |txn| take(txn, worker.0, millis_up(ttl))).await? {
            Free::Now(id, redrive) => {
                answer(RedriveId(id), redrive).map(|(taken, _)| TakenRedrive::Redrive(taken))
            }
            Free::Later(wait) => Ok(TakenRedrive::Later(Duration::from_millis(wait))),
            Free::Never => Ok(TakenRedrive::Nothing),
        }
    }

    pub async fn keep_redrive(
        &self,
        id: RedriveId,
        worker: WorkerId,
        ttl: Duration,
    ) -> Result<bool, StoreError> {
        self.call(ANY_SHARD, BYTES, move |txn| hold(txn, id.0, worker.0, millis_up(ttl))).await
    }

    pub async fn end_redrive(
        &self,
        id: RedriveId,
        worker: Option<WorkerId>,
        state: RedriveState,
    ) -> Result<Option<StoredRedrive>, StoreError> {
        let to = match state {
            RedriveState::Done => RedriveEnd::Done,
            RedriveState::Stopped | RedriveState::Running => RedriveEnd::Stopped,
        };
        let worker = worker.map(|WorkerId(worker)| worker);
        let ended = self.call(ANY_SHARD, BYTES, move |txn| end(txn, id.0, worker, to)).await?;
        ended.map(|redrive| answer(id, redrive)).transpose()
    }

    pub async fn revive_many(
        &self,
        shard: Shard,
        id: RedriveId,
        places: &[DeadCursor],
    ) -> Result<Redriven, StoreError> {
        let (jobs, bytes) = (numbers(places), places.len() * EDGE_BYTES);
        let revived = self.call(shard, bytes, move |txn| revive_many(txn, id.0, &jobs)).await?;
        Ok(revived.map_or(Redriven::Over, Redriven::Jobs))
    }
}

fn answer(id: RedriveId, row: RedriveRow) -> Result<StoredRedrive, StoreError> {
    let state = match row.end {
        None => RedriveState::Running,
        Some(RedriveEnd::Done(_)) => RedriveState::Done,
        Some(RedriveEnd::Stopped(_)) => RedriveState::Stopped,
    };
    let jobs = row.jobs;
    let redrive = Redrive {
        id,
        rate: row.work.rate,
        filter: row.work.filter()?,
        started: Timestamp::from_millis(row.started),
        ended: row.end.map(|end| Timestamp::from_millis(end.at())),
        state,
        revived: jobs,
    };
    Ok((redrive, Some(jobs)))
}

/// Stores a new redrive, and removes old ones. Returns `None` if too many redrives are running.
fn begin(txn: &mut Txn<'_>, id: [u8; 8], mut new: RedriveRow) -> Result<Option<RedriveRow>> {
    if let Some(known) = txn.tables.redrives.get(id)? {
        return Ok(Some(known));
    }
    let (mut ended, running): (Vec<_>, Vec<_>) =
        txn.tables.redrives.all()?.into_iter().partition(|(_, redrive)| redrive.end.is_some());
    if running.len() >= MAX_REDRIVES {
        return Ok(None);
    }
    let ended_at = |redrive: &RedriveRow| redrive.end.map_or(0, RedriveEnd::at);
    ended.sort_unstable_by_key(|(_, redrive)| std::cmp::Reverse(ended_at(redrive)));
    for (n, (old, redrive)) in ended.iter().enumerate() {
        if n + 1 >= MAX_ENDED_REDRIVES
            || ended_at(redrive).saturating_add(millis_up(ENDED_REDRIVE_RETENTION)) < txn.now()
        {
            txn.tables.redrives.remove(*old)?;
        }
    }
    new.started = txn.now();
    txn.tables.redrives.put(id, &new)?;
    txn.wake(Wake::Redrive);
    Ok(Some(new))
}

/// When a redrive is free to be taken.
enum Free {
    /// It is taken now.
    Now([u8; 8], RedriveRow),
    /// After this many ms.
    Later(u64),
    /// No redrive is running.
    Never,
}

fn take(txn: &mut Txn<'_>, worker: [u8; 8], ttl: u64) -> Result<Free> {
    let running = txn.tables.redrives.all()?.into_iter().filter(|(_, redrive)| redrive.end.is_none());
    let Some((id, mut redrive)) = running.min_by_key(|(id, redrive)| (redrive.until, *id)) else {
        return Ok(Free::Never);
    };
    if redrive.until > txn.now() {
        return Ok(Free::Later(redrive.until - txn.now()));
    }
    (redrive.worker, redrive.until) = (worker, txn.now().saturating_add(ttl));
    txn.tables.redrives.put(id, &redrive)?;
    Ok(Free::Now(id, redrive))
}

/// Extends a worker's hold; a `ttl` of zero gives it up. Returns false if the redrive has ended or
/// another worker holds it.
fn hold(txn: &mut Txn<'_>, id: [u8; 8], worker: [u8; 8], ttl: u64) -> Result<bool> {
    let held = txn.tables.redrives.running(id)?.filter(|redrive| redrive.worker == worker);
    let Some(mut redrive) = held else { return Ok(false) };
    if ttl > 0 {
        redrive.until = txn.now().saturating_add(ttl);
    } else {
        (redrive.worker, redrive.until) = (NOBODY, 0);
        txn.wake(Wake::Redrive);
    }
    txn.tables.redrives.put(id, &redrive)?;
    Ok(true)
}

/// Ends a redrive. A `worker` may only end one that it holds. Returns the redrive afterwards.
fn end(
    txn: &mut Txn<'_>,
    id: [u8; 8],
    worker: Option<[u8; 8]>,
    to: fn(u64) -> RedriveEnd,
) -> Result<Option<RedriveRow>> {
    let Some(mut redrive) = txn.tables.redrives.get(id)? else { return Ok(None) };
    if redrive.end.is_none() && worker.is_none_or(|worker| worker == redrive.worker) {
        redrive.end = Some(to(txn.now()));
        txn.tables.redrives.put(id, &redrive)?;
    }
    Ok(Some(redrive))
}

/// Returns how many jobs were made ready; `None` if the redrive has ended. A job that this redrive
/// has made ready before has its id as token, and is skipped.
fn revive_many(txn: &mut Txn<'_>, id: [u8; 8], jobs: &[(u64, u64)]) -> Result<Option<u64>> {
    let Some(mut redrive) = txn.tables.redrives.running(id)? else { return Ok(None) };
    let mut revived = 0;
    txn.because(EdgeName::Redrive, None);
    for (died, number) in jobs {
        if let Some(mut job) = still_dead(txn, *died, *number)?.filter(|job| job.token != Some(id)) {
            revive(txn, &mut job, id)?;
            revived += 1;
        }
    }
    if revived > 0 {
        redrive.jobs += revived;
        txn.tables.redrives.put(id, &redrive)?;
    }
    Ok(Some(revived))
}
