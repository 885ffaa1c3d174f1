//! The outbox: rows of a table, made deaths here.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use ringback_core::clock::Timestamp;
use ringback_core::contract::payload::NoticeParts as Notes;
use ringback_core::contract::{
    AckResult, DeadLetter, Epoch, Outbox, OutboxAck, OutboxId, PendingNotice, Shard, StoreError,
};
use ringback_core::job::JobKey;

use super::tables::{OutboxEntry, OutboxKey};
use super::{EmbeddedStore, edges, known};

/// About what a call writes for each death.
const BYTES: usize = 512;

impl EmbeddedStore {
    pub async fn outbox(&self, shard: Shard, limit: usize) -> Result<Outbox, StoreError> {
        let (found, now) = self.call(shard, 0, move |txn| edges::outbox(txn, limit)).await?;
        let deaths =
            found.into_iter().map(|(key, entry)| PendingNotice { id: place(key), letter: death(key, entry) });
        Ok(Outbox { pending: deaths.collect(), now: Timestamp::from_millis(now) })
    }

    pub async fn acknowledge(
        &self,
        shard: Shard,
        epoch: &Epoch,
        telling: &OutboxAck,
    ) -> Result<AckResult, StoreError> {
        // A place of another backend is none.
        let told: Vec<_> = telling.done.iter().filter_map(key).collect();
        let later = telling.later.iter().filter_map(|(place, after)| Some((key(place)?, *after)));
        let (epoch, later) = (epoch.clone(), later.collect::<Vec<_>>());
        let bytes = (told.len() + later.len()) * BYTES;
        self.call(shard, bytes, move |txn| edges::tell(txn, &epoch, &told, &later)).await
    }
}

fn place((shard, at, number, attempts): OutboxKey) -> OutboxId {
    let mut packed = BytesMut::new();
    packed.put_u16(shard);
    packed.put_u64(at);
    packed.put_u64(number);
    packed.put_u32(attempts);
    OutboxId(packed.freeze())
}

fn key(place: &OutboxId) -> Option<OutboxKey> {
    let mut raw: Bytes = place.0.clone();
    let key =
        (raw.try_get_u16().ok()?, raw.try_get_u64().ok()?, raw.try_get_u64().ok()?, raw.try_get_u32().ok()?);
    (!raw.has_remaining()).then_some(key)
}

fn death((shard, _, number, _): OutboxKey, entry: Option<OutboxEntry>) -> Option<DeadLetter> {
    let death = entry.and_then(|OutboxEntry { died, record, body }| {
        let key = JobKey { topic: record.topic.parse().ok()?, id: body.id.parse().ok()? };
        // The death can be told without what the job brought along.
        let Notes { on_dead, context, trace } = Notes::unpack(&body.payload).unwrap_or_default();
        let [died, arrived] = [died, record.arrived()].map(Timestamp::from_millis);
        Some(DeadLetter { job: known(record, key), died, arrived, on_dead, context, trace })
    });
    if death.is_none() {
        tracing::error!(shard, job.number = number, "a death cannot be read, and so not be told");
    }
    death
}
