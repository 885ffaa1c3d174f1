//! Revivals in the embedded store: a row each, which counts the jobs in the transaction that
//! revives them.

use std::time::Duration;

use super::edges::{self, Free};
use super::tables::{RevivalEnd, RevivalRow};
use super::{EmbeddedStore, dead};
use crate::clock::{Timestamp, millis_up};
use crate::store::revivals::{Kept, Work};
use crate::store::{
    DeadFilter, DeadPlace, Holder, Revival, RevivalId, RevivalState, Revived, Shard, StoreError, Taken,
};

/// They are of no shard.
const ANY: Shard = Shard(0);
/// About what a call writes.
const BYTES: usize = 512;

impl EmbeddedStore {
    pub(crate) async fn begin_revival(
        &self,
        id: RevivalId,
        filter: &DeadFilter,
        rate: u32,
    ) -> Result<Option<Kept>, StoreError> {
        let work = Work::new(filter, rate);
        let row = RevivalRow { work, started: 0, end: None, revived: 0, holder: [0; 8], until: 0 };
        let begun = self.call(ANY, BYTES, move |txn| edges::begin_revival(txn, id.0, row.clone())).await?;
        begun.map(|row| kept(id, row)).transpose()
    }

    pub(crate) async fn revivals(&self, id: Option<RevivalId>) -> Result<Vec<Kept>, StoreError> {
        let rows = self.call(ANY, 0, move |txn| match id {
            Some(RevivalId(id)) => {
                Ok(txn.tables.revivals.get(id)?.map(|row| (id, row)).into_iter().collect())
            }
            None => txn.tables.revivals.all(),
        });
        rows.await?.into_iter().map(|(id, row)| kept(RevivalId(id), row)).collect()
    }

    pub(crate) async fn take_revival(&self, holder: Holder, ttl: Duration) -> Result<Taken, StoreError> {
        let taken = self.call(ANY, BYTES, move |txn| edges::take_revival(txn, holder.0, millis_up(ttl)));
        match taken.await? {
            Free::This(id, row) => kept(RevivalId(id), row).map(|(revival, _)| Taken::Revival(revival)),
            Free::Later(wait) => Ok(Taken::Later(Duration::from_millis(wait))),
            Free::Nothing => Ok(Taken::Nothing),
        }
    }

    pub(crate) async fn keep_revival(
        &self,
        id: RevivalId,
        holder: Holder,
        ttl: Duration,
    ) -> Result<bool, StoreError> {
        self.call(ANY, BYTES, move |txn| edges::keep_revival(txn, id.0, holder.0, millis_up(ttl))).await
    }

    pub(crate) async fn end_revival(
        &self,
        id: RevivalId,
        holder: Option<Holder>,
        state: RevivalState,
    ) -> Result<Option<Kept>, StoreError> {
        let end = match state {
            RevivalState::Done => RevivalEnd::Done,
            RevivalState::Stopped | RevivalState::Running => RevivalEnd::Stopped,
        };
        let holder = holder.map(|Holder(holder)| holder);
        let ended = self.call(ANY, BYTES, move |txn| edges::end_revival(txn, id.0, holder, end)).await?;
        ended.map(|row| kept(id, row)).transpose()
    }

    pub(crate) async fn revive_many(
        &self,
        shard: Shard,
        id: RevivalId,
        places: &[DeadPlace],
    ) -> Result<Revived, StoreError> {
        let (jobs, bytes) = (dead::named(places), places.len() * 256);
        let revived = self.call(shard, bytes, move |txn| edges::revive_many(txn, id.0, &jobs)).await?;
        Ok(revived.map_or(Revived::Over, Revived::Jobs))
    }
}

fn kept(id: RevivalId, row: RevivalRow) -> Result<Kept, StoreError> {
    let state = match row.end {
        None => RevivalState::Running,
        Some(RevivalEnd::Done(_)) => RevivalState::Done,
        Some(RevivalEnd::Stopped(_)) => RevivalState::Stopped,
    };
    let revival = Revival {
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
