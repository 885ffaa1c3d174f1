//! The outbox of notices: reads the notices that are due, removes published ones, and postpones rejected ones.

use std::time::Duration;

use bytes::Buf as _;
use ringback_core::clock::{Timestamp, millis_up};
use ringback_core::store_types::{
    AckResult, EndedJob, Epoch, MAX_OUTBOX_BYTES, Outbox, OutboxAck, OutboxId, PendingNotice, Shard,
    StoreError, payload,
};

use crate::error::Result;
use crate::tables::{Notice, OutboxKey, OutboxRow};
use crate::txn::Txn;
use crate::{EmbeddedStore, answers};

/// About how many bytes a call writes for each notice.
const BYTES: usize = 512;

impl EmbeddedStore {
    pub async fn outbox(&self, shard: Shard, limit: usize) -> Result<Outbox, StoreError> {
        let read = move |txn: &mut Txn<'_>| {
            let now = txn.now();
            Ok((txn.tables.outbox.until(txn.shard(), now, limit, MAX_OUTBOX_BYTES)?, now))
        };
        let (rows, now) = self.call(shard, 0, read).await?;
        let pending =
            rows.into_iter().map(|row| PendingNotice { id: outbox_id(row.0), ended: ended_job(row) });
        Ok(Outbox { pending: pending.collect(), now: Timestamp::from_millis(now) })
    }

    pub async fn acknowledge(
        &self,
        shard: Shard,
        epoch: &Epoch,
        ack: &OutboxAck,
    ) -> Result<AckResult, StoreError> {
        // Ids of another backend are skipped.
        let published: Vec<_> = ack.done.iter().filter_map(key).collect();
        let later = ack.later.iter().filter_map(|(id, after)| Some((key(id)?, *after)));
        let (epoch, later) = (epoch.clone(), later.collect::<Vec<_>>());
        let bytes = (published.len() + later.len()) * BYTES;
        self.call(shard, bytes, move |txn| acknowledge(txn, &epoch, &published, &later)).await
    }
}

fn acknowledge(
    txn: &mut Txn<'_>,
    epoch: &Epoch,
    published: &[OutboxKey],
    later: &[(OutboxKey, Duration)],
) -> Result<AckResult> {
    if txn.row.is_fenced(epoch) {
        return Ok(AckResult::Fenced);
    }
    for (key, after) in later {
        let at = txn.now_up().saturating_add(millis_up(*after));
        txn.tables.outbox.defer(*key, at)?;
    }
    published.iter().try_for_each(|key| txn.tables.outbox.remove(*key))?;
    let first = txn.tables.outbox.first(txn.shard())?;
    let wait = |at: u64| Duration::from_micros(at.saturating_mul(1000).saturating_sub(txn.now_us()));
    Ok(AckResult::Held(first.map(wait)))
}

fn outbox_id((shard, at, number, attempts): OutboxKey) -> OutboxId {
    let [at, number] = [at, number].map(u64::to_be_bytes);
    OutboxId([&shard.to_be_bytes()[..], &at, &number, &attempts.to_be_bytes()].concat().into())
}

fn key(id: &OutboxId) -> Option<OutboxKey> {
    let mut raw = id.0.clone();
    let key =
        (raw.try_get_u16().ok()?, raw.try_get_u64().ok()?, raw.try_get_u64().ok()?, raw.try_get_u32().ok()?);
    (!raw.has_remaining()).then_some(key)
}

fn ended_job(((shard, _, number, _), notice): OutboxRow) -> Option<EndedJob> {
    let ended = notice.and_then(|Notice { at, success, record, body }| {
        let key = answers::key(&record, &body)?;
        // The notice can be published without the job's own data.
        let parts = payload::NoticeParts::unpack(&body.payload).unwrap_or_default();
        let times = [at, record.arrived()].map(Timestamp::from_millis);
        Some(EndedJob::new(answers::job(record, key), success, times, parts))
    });
    if ended.is_none() {
        tracing::error!(shard, job.number = number, "a notice cannot be read or published");
    }
    ended
}
