//! The outbox of pending notices: reads and acknowledges them.

use std::time::Duration;

use bytes::{Buf, Bytes};
use ringback_core::clock::{Timestamp, millis_up};
use ringback_core::state::State;
use ringback_core::store_types::payload::NoticeParts;
use ringback_core::store_types::{
    AckResult, EndedJob, Epoch, MAX_OUTBOX_BYTES, Outbox, OutboxAck, OutboxId, PendingNotice, Shard,
    StoreError, Success,
};

use crate::record::{FixedFields, OptionalFields};
use crate::redis_store::RedisStore;
use crate::script;

const UNREADABLE: StoreError = StoreError::Unreadable("an entry of the outbox");

impl RedisStore {
    pub async fn outbox(&self, shard: Shard, limit: usize) -> Result<Outbox, StoreError> {
        let answer = self.call(&script::OUTBOX, shard).arg((limit, MAX_OUTBOX_BYTES)).run();
        let (now, entries): (u64, Vec<Bytes>) = answer.await?;
        let pending = entries.into_iter().map(|entry| pending(shard, entry)).collect();
        Ok(Outbox { pending, now: Timestamp::from_millis(now) })
    }

    pub async fn acknowledge(
        &self,
        shard: Shard,
        epoch: &Epoch,
        ack: &OutboxAck,
    ) -> Result<AckResult, StoreError> {
        let done: Vec<_> = ack.done.iter().map(|id| &id.0[..]).collect();
        let later: Vec<_> = ack.later.iter().map(|(id, after)| (millis_up(*after), &id.0[..])).collect();
        let args = (&epoch.0, done.len(), done, later);
        let waits: Vec<i64> = self.call(&script::ACKNOWLEDGE, shard).arg(args).run().await?;
        let wait = waits.first().map(|us| u64::try_from(*us).ok().map(Duration::from_micros));
        Ok(wait.map_or(AckResult::Fenced, AckResult::Held))
    }
}

fn pending(shard: Shard, entry: Bytes) -> PendingNotice {
    let ended = parse(entry.clone()).map_err(|error| {
        tracing::error!(shard = shard.0, %error, "a notice cannot be read");
    });
    PendingNotice { id: OutboxId(entry), ended: ended.ok() }
}

/// Reads an entry in the format of `prelude/outbox.lua`. Fails if it cannot be read.
fn parse(mut entry: Bytes) -> Result<EndedJob, StoreError> {
    if entry.remaining() < 6 {
        return Err(UNREADABLE);
    }
    let at = Timestamp::from_millis(entry.get_uint(6));
    let success = Success::take(&mut entry).map_err(|_| UNREADABLE)?;
    let (lane, job_state) = (part(&mut entry)?, part(&mut entry)?);
    let lane = std::str::from_utf8(&lane).map_err(|_| UNREADABLE)?;
    let head = FixedFields::parse(State::Dead, job_state, &entry)?;
    let tail = OptionalFields::parse(lane, entry)?;
    // A notice can be published without the job's own data.
    let (parts, arrived) = (NoticeParts::unpack(&tail.payload).unwrap_or_default(), head.arrived);
    Ok(EndedJob::new(head.into_job(tail.key, tail.tags), success, [at, arrived], parts))
}

/// Takes a part off the front of an entry, after its length (2 bytes). Fails if the entry is too short.
pub(super) fn part(entry: &mut Bytes) -> Result<Bytes, StoreError> {
    let length = entry.try_get_u16().map_err(|_| UNREADABLE)?;
    if entry.remaining() < usize::from(length) {
        return Err(UNREADABLE);
    }
    Ok(entry.split_to(usize::from(length)))
}

#[cfg(test)]
mod tests {
    use ringback_core::limits::MAX_NOTICE_DELAY;

    use super::*;

    #[test]
    fn the_longest_wait_is_that_of_the_prelude() {
        let outbox = include_str!("../prelude/outbox.lua");
        assert!(outbox.contains(&format!("LONGEST = {},", MAX_NOTICE_DELAY.as_millis())));
    }

    #[test]
    fn an_entry_that_is_cut_off_is_unreadable_and_never_a_panic() {
        let record = [vec![1; 33], vec![3], b"abc".to_vec(), vec![0, 9]].concat();
        let run = vec![0; 67];
        let entry = [
            [0, 0, 0, 0, 3, 232].to_vec(),
            vec![0, 0],
            vec![0, 11],
            b"t https://a".to_vec(),
            vec![0, 67],
            run,
            record,
        ]
        .concat();
        let whole = parse(Bytes::from(entry.clone())).unwrap();
        assert_eq!((whole.job.key.to_string().as_str(), whole.at.as_millis()), ("t/abc", 1000));
        assert_eq!(whole.url, None, "the payload cannot be read");
        // The last two bytes are a payload that cannot be read anyway.
        for n in 0..entry.len() - 2 {
            assert!(parse(Bytes::copy_from_slice(&entry[..n])).is_err(), "{n} bytes");
        }
    }
}
