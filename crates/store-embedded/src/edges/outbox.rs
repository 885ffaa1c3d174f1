//! The outbox of dead-letter notices: reads those that are due, removes what was published, and puts
//! off the rest.

use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::pass::is_fenced;
use crate::clock::{Timestamp, millis_up};
use crate::notice::Death;
use crate::store::embedded::error::Result;
use crate::store::embedded::tables::{Notice, OutboxKey, OutboxRow};
use crate::store::embedded::txn::Txn;
use crate::store::embedded::{EmbeddedStore, answers};
use crate::store::outbox::{MOST_BYTES, Outbox, OutboxPlace, Telling, Told, Untold};
use crate::store::{Epoch, Shard, StoreError, payload};

/// About how many bytes a call writes for each notice.
const BYTES: usize = 512;

impl EmbeddedStore {
    pub(crate) async fn outbox(&self, shard: Shard, limit: usize) -> Result<Outbox, StoreError> {
        let read = move |txn: &mut Txn<'_>| {
            let now = txn.now();
            Ok((txn.tables.outbox.until(txn.shard(), now, limit, MOST_BYTES)?, now))
        };
        let (rows, now) = self.call(shard, 0, read).await?;
        let deaths = rows.into_iter().map(|row| Untold { place: place(row.0), death: death(row) });
        Ok(Outbox { deaths: deaths.collect(), now: Timestamp::from_millis(now) })
    }

    pub(crate) async fn tell(
        &self,
        shard: Shard,
        epoch: &Epoch,
        telling: &Telling,
    ) -> Result<Told, StoreError> {
        // Places of another backend are skipped.
        let published: Vec<_> = telling.told.iter().filter_map(key).collect();
        let later = telling.later.iter().filter_map(|(place, after)| Some((key(place)?, *after)));
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
) -> Result<Told> {
    if is_fenced(txn, epoch) {
        return Ok(Told::Fenced);
    }
    for (key, after) in later {
        let at = txn.now_up().saturating_add(millis_up(*after));
        txn.tables.outbox.put_off(*key, at)?;
    }
    published.iter().try_for_each(|key| txn.tables.outbox.remove(*key))?;
    let first = txn.tables.outbox.first(txn.shard())?;
    let wait = |at: u64| Duration::from_micros(at.saturating_mul(1000).saturating_sub(txn.now_us()));
    Ok(Told::Held(first.map(wait)))
}

fn place((shard, at, number, attempts): OutboxKey) -> OutboxPlace {
    let mut packed = BytesMut::new();
    packed.put_u16(shard);
    packed.put_u64(at);
    packed.put_u64(number);
    packed.put_u32(attempts);
    OutboxPlace(packed.freeze())
}

fn key(place: &OutboxPlace) -> Option<OutboxKey> {
    let mut raw: Bytes = place.0.clone();
    let key =
        (raw.try_get_u16().ok()?, raw.try_get_u64().ok()?, raw.try_get_u64().ok()?, raw.try_get_u32().ok()?);
    (!raw.has_remaining()).then_some(key)
}

fn death(((shard, _, number, _), notice): OutboxRow) -> Option<Death> {
    let death = notice.and_then(|Notice { died, record, body }| {
        let key = answers::key(&record, &body)?;
        // The notice can be published without what the job brought along.
        let payload::Told { on_dead, context, trace } =
            payload::Told::unpack(&body.payload).unwrap_or_default();
        let [died, arrived] = [died, record.arrived()].map(Timestamp::from_millis);
        Some(Death { job: answers::job(record, key), died, arrived, on_dead, context, trace })
    });
    if death.is_none() {
        tracing::error!(shard, job.number = number, "a dead-letter notice cannot be read or published");
    }
    death
}
