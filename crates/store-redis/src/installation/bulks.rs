//! Bulk operations: begins, lists, claims and ends them, and adds up how many jobs they have changed. They are stored in
//! the installation; `transitions/bulk.rs` changes jobs.

use std::time::Duration;

use bytes::{Buf as _, Bytes};
use futures_util::future::try_join_all;
use ringback_core::clock::{Timestamp, millis_up};
use ringback_core::limits::MAX_LOCK_TTL;
use ringback_core::store_types::{
    Bulk, BulkId, BulkState, BulkTarget, ENDED_BULK_RETENTION, MAX_BULKS, MAX_ENDED_BULKS, StoreError,
    TakenBulk, WorkerId,
};

use crate::keys::KeySpace;
use crate::redis_store::RedisStore;
use crate::script;

/// The stored number of changed jobs until it is final.
const NOT_KNOWN: u64 = (1 << 48) - 1;
/// The length of the part before the target and the rate, in bytes.
const HEAD: usize = 27;
/// The states in the order of their codes, which begin with 1.
const STATES: [BulkState; 3] = [BulkState::Running, BulkState::Done, BulkState::Stopped];

/// A bulk operation, with the final number of changed jobs; `None` if only the shards know it.
type StoredBulk = (Bulk, Option<u64>);

const UNREADABLE: StoreError = StoreError::Unreadable("a bulk operation");

impl RedisStore {
    pub async fn start_bulk(
        &self,
        id: BulkId,
        target: &BulkTarget,
        rate: u32,
    ) -> Result<Option<Bulk>, StoreError> {
        let work = postcard::to_stdvec(&(target, rate)).expect("plain data always serialises");
        let args = (&id.0, work, MAX_BULKS, millis_up(ENDED_BULK_RETENTION), MAX_ENDED_BULKS);
        let begun =
            self.call(&script::BEGIN_BULK, KeySpace::Installation).confirmed().arg(args).run().await?;
        self.counted(unpack(id, begun)?).await
    }

    pub async fn bulks(&self, id: Option<BulkId>) -> Result<Vec<Bulk>, StoreError> {
        let id = id.as_ref().map_or(&[][..], |id| &id.0);
        let found: Vec<(Bytes, Bytes)> =
            self.call(&script::BULKS, KeySpace::Installation).arg(id).run().await?;
        let mut all = Vec::with_capacity(found.len());
        for (id, raw) in found {
            match id_of(&id).and_then(|id| unpack(id, raw)) {
                Ok(found) => all.push(found),
                Err(error) => tracing::error!(%error, "a bulk operation cannot be read and is skipped"),
            }
        }
        let all = try_join_all(all.into_iter().map(|stored| self.counted(stored))).await?;
        Ok(all.into_iter().flatten().collect())
    }

    pub async fn take_bulk(&self, holder: WorkerId, ttl: Duration) -> Result<TakenBulk, StoreError> {
        let args = (&holder.0, millis_up(ttl), millis_up(ttl.max(MAX_LOCK_TTL)));
        let answer = self.call(&script::TAKE_BULK, KeySpace::Installation).arg(args).run();
        let (wait, id, raw): (i64, Bytes, Bytes) = answer.await?;
        if id.is_empty() {
            let wait = u64::try_from(wait).ok().map(Duration::from_millis);
            return Ok(wait.map_or(TakenBulk::Nothing, TakenBulk::Later));
        }
        let found = unpack(id_of(&id)?, raw)?;
        found.map(|(bulk, _)| TakenBulk::Bulk(bulk)).ok_or(UNREADABLE)
    }

    pub async fn keep_bulk(&self, id: BulkId, holder: WorkerId, ttl: Duration) -> Result<bool, StoreError> {
        self.call(&script::KEEP_BULK, KeySpace::Installation)
            .arg((&id.0, &holder.0, millis_up(ttl)))
            .run()
            .await
    }

    /// Ends a bulk operation if it runs; a `holder` only one that it has claimed. Closes it in the shards and stores the
    /// total; a done one is closed in the shards first, since they have no more to change. Returns the bulk operation
    /// afterwards; `None` if it is unknown.
    pub async fn end_bulk(
        &self,
        id: BulkId,
        holder: Option<WorkerId>,
        state: BulkState,
    ) -> Result<Option<Bulk>, StoreError> {
        if state != BulkState::Done {
            let ended = self.mark_ended(id, holder, state, None).await?;
            if !matches!(&ended, Some((bulk, None)) if bulk.state != BulkState::Running) {
                return self.counted(ended).await;
            }
        }
        let closed = self.options.all_shards().map(|shard| self.close_bulk(shard, id));
        let sum = try_join_all(closed).await?.into_iter().sum();
        let ended = self.mark_ended(id, holder, state, Some(sum)).await?;
        Ok(ended.map(|(bulk, total)| Bulk { changed: total.unwrap_or(sum), ..bulk }))
    }

    /// Returns a bulk operation with the number of jobs that it has changed so far, which may need a call of each shard.
    async fn counted(&self, stored: Option<StoredBulk>) -> Result<Option<Bulk>, StoreError> {
        let Some((bulk, total)) = stored else { return Ok(None) };
        let changed = match total {
            Some(total) => total,
            None => {
                let counts = self.options.all_shards().map(|shard| self.changed_by(shard, bulk.id));
                try_join_all(counts).await?.into_iter().sum()
            }
        };
        Ok(Some(Bulk { changed, ..bulk }))
    }

    async fn mark_ended(
        &self,
        id: BulkId,
        holder: Option<WorkerId>,
        state: BulkState,
        total: Option<u64>,
    ) -> Result<Option<StoredBulk>, StoreError> {
        let holder = holder.as_ref().map_or(&[][..], |holder| &holder.0);
        let total = total.map_or(String::new(), |total| total.to_string());
        let code = STATES.iter().position(|known| *known == state).map_or(0, |index| index + 1);
        unpack(
            id,
            self.call(&script::END_BULK, KeySpace::Installation)
                .arg((&id.0, holder, code, total))
                .run()
                .await?,
        )
    }
}

fn id_of(raw: &[u8]) -> Result<BulkId, StoreError> {
    raw.try_into().map(BulkId).map_err(|_| UNREADABLE)
}

/// Reads a bulk operation as `prelude/bulks.lua` packs it; `None` if `raw` is empty. Fails if it cannot be read.
fn unpack(id: BulkId, mut raw: Bytes) -> Result<Option<StoredBulk>, StoreError> {
    if raw.is_empty() {
        return Ok(None);
    }
    if raw.len() < HEAD {
        return Err(UNREADABLE);
    }
    let state = *STATES.get(usize::from(raw.get_u8()).wrapping_sub(1)).ok_or(UNREADABLE)?;
    let (started, ended, changed) = (raw.get_uint(6), raw.get_uint(6), raw.get_uint(6));
    raw.advance(8);
    let (target, rate) = postcard::from_bytes(&raw).map_err(|_| UNREADABLE)?;
    let total = Some(changed).filter(|changed| *changed != NOT_KNOWN);
    let bulk = Bulk {
        id,
        target,
        rate,
        started: Timestamp::from_millis(started),
        ended: Some(ended).filter(|ended| *ended > 0).map(Timestamp::from_millis),
        state,
        changed: total.unwrap_or(0),
    };
    Ok(Some((bulk, total)))
}
