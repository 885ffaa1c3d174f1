//! Revivals in the embedded store: a row each, which counts the jobs in the transaction that
//! revives them.

use std::time::Duration;

use ringback_core::clock::{Timestamp, millis_up};
use ringback_core::contract::{
    DeadCursor, DeadFilter, Redrive, RedriveId, RedriveJob, RedriveState, Redriven, Shard, StoreError,
    StoredRedrive, TakenRedrive, WorkerId,
};

use super::edges::{self, Free};
use super::tables::{RevivalEnd, RevivalRow};
use super::{EmbeddedStore, dead};

/// They are of no shard.
const ANY: Shard = Shard(0);
/// About what a call writes.
const BYTES: usize = 512;

impl EmbeddedStore {
    pub async fn start_redrive(
        &self,
        id: RedriveId,
        filter: &DeadFilter,
        rate: u32,
    ) -> Result<Option<StoredRedrive>, StoreError> {
        let work = RedriveJob::new(filter, rate);
        let row = RevivalRow { work, started: 0, end: None, revived: 0, holder: [0; 8], until: 0 };
        let begun = self.call(ANY, BYTES, move |txn| edges::begin_revival(txn, id.0, row.clone())).await?;
        begun.map(|row| kept(id, row)).transpose()
    }

    pub async fn redrives(&self, id: Option<RedriveId>) -> Result<Vec<StoredRedrive>, StoreError> {
        let rows = self.call(ANY, 0, move |txn| match id {
            Some(RedriveId(id)) => {
                Ok(txn.tables.revivals.get(id)?.map(|row| (id, row)).into_iter().collect())
            }
            None => txn.tables.revivals.all(),
        });
        rows.await?.into_iter().map(|(id, row)| kept(RedriveId(id), row)).collect()
    }

    pub async fn take_redrive(&self, holder: WorkerId, ttl: Duration) -> Result<TakenRedrive, StoreError> {
        let taken = self.call(ANY, BYTES, move |txn| edges::take_revival(txn, holder.0, millis_up(ttl)));
        match taken.await? {
            Free::This(id, row) => {
                kept(RedriveId(id), row).map(|(revival, _)| TakenRedrive::Redrive(revival))
            }
            Free::Later(wait) => Ok(TakenRedrive::Later(Duration::from_millis(wait))),
            Free::Nothing => Ok(TakenRedrive::Nothing),
        }
    }

    pub async fn keep_redrive(
        &self,
        id: RedriveId,
        holder: WorkerId,
        ttl: Duration,
    ) -> Result<bool, StoreError> {
        self.call(ANY, BYTES, move |txn| edges::keep_revival(txn, id.0, holder.0, millis_up(ttl))).await
    }

    pub async fn end_redrive(
        &self,
        id: RedriveId,
        holder: Option<WorkerId>,
        state: RedriveState,
    ) -> Result<Option<StoredRedrive>, StoreError> {
        let end = match state {
            RedriveState::Done => RevivalEnd::Done,
            RedriveState::Stopped | RedriveState::Running => RevivalEnd::Stopped,
        };
        let holder = holder.map(|WorkerId(holder)| holder);
        let ended = self.call(ANY, BYTES, move |txn| edges::end_revival(txn, id.0, holder, end)).await?;
        ended.map(|row| kept(id, row)).transpose()
    }

    pub async fn revive_many(
        &self,
        shard: Shard,
        id: RedriveId,
        places: &[DeadCursor],
    ) -> Result<Redriven, StoreError> {
        let (jobs, bytes) = (dead::named(places), places.len() * 256);
        let revived = self.call(shard, bytes, move |txn| edges::revive_many(txn, id.0, &jobs)).await?;
        Ok(revived.map_or(Redriven::Over, Redriven::Jobs))
    }
}

fn kept(id: RedriveId, row: RevivalRow) -> Result<StoredRedrive, StoreError> {
    let state = match row.end {
        None => RedriveState::Running,
        Some(RevivalEnd::Done(_)) => RedriveState::Done,
        Some(RevivalEnd::Stopped(_)) => RedriveState::Stopped,
    };
    let revival = Redrive {
        id,
        rate: row.work.rate,
        filter: row.work.filter()?,
        started: Timestamp::from_millis(row.started),
        ended: row.end.map(|end| Timestamp::from_millis(end.at())),
        state,
        revived: row.revived,
    };
    Ok((revival, Some(row.revived)))
}
