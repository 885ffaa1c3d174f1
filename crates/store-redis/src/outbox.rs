//! The outbox on Redis: a sorted set of entries, which are read here.

use std::time::Duration;

use bytes::{Buf, Bytes};
use ringback_core::clock::{Timestamp, millis_up};
use ringback_core::contract::payload::NoticeParts as Notes;
use ringback_core::contract::{
    AckResult, DeadLetter, Epoch, MAX_OUTBOX_BYTES, Outbox, OutboxAck, OutboxId, PendingNotice, Shard,
    StoreError,
};
use ringback_core::state::State;

use super::RedisStore;
use super::layout::{Head, Tail};
use super::script::{self, reply};

const UNREADABLE: StoreError = StoreError::Unreadable("an entry of the outbox");

impl RedisStore {
    pub async fn outbox(&self, shard: Shard, limit: usize) -> Result<Outbox, StoreError> {
        let answer = self.run(&script::OUTBOX, shard, |cmd| {
            cmd.arg(limit).arg(MAX_OUTBOX_BYTES);
        });
        let mut parts = reply::list(answer.await?)?.into_iter();
        let now = reply::number(&parts.next().ok_or(UNREADABLE)?)?;
        let entries = parts.map(reply::bytes).collect::<Result<Vec<_>, _>>()?;
        let deaths = entries.into_iter().map(|entry| untold(shard, entry)).collect();
        Ok(Outbox { pending: deaths, now: Timestamp::from_millis(now) })
    }

    pub async fn acknowledge(
        &self,
        shard: Shard,
        epoch: &Epoch,
        telling: &OutboxAck,
    ) -> Result<AckResult, StoreError> {
        let answer = self.run(&script::TELL, shard, |cmd| {
            cmd.arg(&epoch.0).arg(telling.done.len());
            telling.done.iter().for_each(|place| {
                cmd.arg(&place.0[..]);
            });
            for (place, after) in &telling.later {
                cmd.arg(millis_up(*after)).arg(&place.0[..]);
            }
        });
        match reply::list(answer.await?)?.as_slice() {
            [] => Ok(AckResult::Fenced),
            [wait, ..] => {
                Ok(AckResult::Held(u64::try_from(reply::int(wait)?).ok().map(Duration::from_micros)))
            }
        }
    }
}

fn untold(shard: Shard, entry: Bytes) -> PendingNotice {
    let death = death(entry.clone()).map_err(|error| {
        tracing::error!(shard = shard.0, %error, "a death cannot be read, and so not be told");
    });
    PendingNotice { id: OutboxId(entry), letter: death.ok() }
}

/// Reads an entry as prelude/outbox.lua makes it.
fn death(mut entry: Bytes) -> Result<DeadLetter, StoreError> {
    if entry.remaining() < 6 {
        return Err(UNREADABLE);
    }
    let died = Timestamp::from_millis(entry.get_uint(6));
    let (lane, run) = (part(&mut entry)?, part(&mut entry)?);
    let lane = std::str::from_utf8(&lane).map_err(|_| UNREADABLE)?;
    let head = Head::parse(State::Dead, run, &entry)?;
    let tail = Tail::parse(lane, entry)?;
    // The death can be told without what the job brought along.
    let Notes { on_dead, context, trace } = Notes::unpack(&tail.payload).unwrap_or_default();
    let arrived = head.arrived();
    Ok(DeadLetter { job: head.into_job(tail.key), died, arrived, on_dead, context, trace })
}

/// What stands behind its length.
fn part(entry: &mut Bytes) -> Result<Bytes, StoreError> {
    let length = entry.try_get_u16().map_err(|_| UNREADABLE)?;
    if entry.remaining() < usize::from(length) {
        return Err(UNREADABLE);
    }
    Ok(entry.split_to(usize::from(length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_that_is_cut_off_is_unreadable_and_never_a_panic() {
        let record = [vec![1; 33], vec![3], b"abc".to_vec(), vec![0, 9]].concat();
        let run = vec![0; 67];
        let entry =
            [[0, 0, 0, 0, 3, 232].to_vec(), vec![0, 11], b"t https://a".to_vec(), vec![0, 67], run, record]
                .concat();
        let whole = death(Bytes::from(entry.clone())).unwrap();
        assert_eq!((whole.job.key.to_string().as_str(), whole.died.as_millis()), ("t/abc", 1000));
        assert_eq!(whole.on_dead, None, "what it brought along cannot be read");
        // Only the last two bytes can be spared.
        for n in 0..entry.len() - 2 {
            assert!(death(Bytes::copy_from_slice(&entry[..n])).is_err(), "{n} bytes");
        }
    }
}
