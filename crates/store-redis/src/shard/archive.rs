//! The archive outbox: attaches an archive, reads its state, and reads, removes and drops the first entries.

use std::time::Duration;

use bytes::{Buf as _, Bytes};
use futures_util::future::join_all;
use redis::Value;
use ringback_core::clock::{Timestamp, millis_up};
use ringback_core::job::Delivery;
use ringback_core::state::State;
use ringback_core::store_types::attempt_log::shown;
use ringback_core::store_types::{
    ArchiveEntries, ArchiveSettings, ArchiveStatus, ArchivedJob, EndedState, EndedStates, MAX_ARCHIVE_BYTES,
    OutboxPart, Shard, StoreError, TakeEntries, WhenFull, payload,
};

use super::outbox::part;
use crate::record::{FixedFields, OptionalFields};
use crate::redis_store::RedisStore;
use crate::reply::read;
use crate::script;

/// Bits of the setting of a shard, apart from those of the kinds of ends, as in `prelude/archive.lua`.
const WITH_BODIES: u64 = 32;
const DROPS: u64 = 64;
const ATTACHED: u64 = 128;
const FULL: u64 = 256;
/// Added to the kind of an entry with a body.
const HAS_BODY: u8 = 128;
/// The length of the head of an entry in bytes: kind, time and locator.
const HEAD: usize = 19;

const UNREADABLE: StoreError = StoreError::Unreadable("an entry of the archive outbox");

impl RedisStore {
    pub async fn attach_archive(
        &self,
        shard: Shard,
        settings: Option<ArchiveSettings>,
    ) -> Result<(), StoreError> {
        let (bits, bound) = settings.map_or((0, 0), |settings| (pack(&settings), settings.bound));
        self.call(&script::ATTACH_ARCHIVE, shard).arg((bits, bound)).run::<u64>().await.map(drop)
    }

    pub async fn archive_status(&self, shard: Shard) -> Result<ArchiveStatus, StoreError> {
        let [bits, pending, bytes, bound, dropped, oldest]: [u64; 6] =
            self.call(&script::ARCHIVE_STATUS, shard).run().await?;
        let settings = unpack(bits, bound);
        Ok(ArchiveStatus {
            settings,
            bound: settings.map_or(0, |settings| settings.bound),
            pending,
            bytes,
            dropped,
            oldest: (oldest > 0).then(|| Timestamp::from_millis(oldest)),
            stalled: u16::from(bits & FULL != 0),
        })
    }

    pub async fn take_ended(
        &self,
        shard: Shard,
        archiver: &str,
        lasts: Duration,
        limit: usize,
    ) -> Result<TakeEntries, StoreError> {
        let args = (archiver, millis_up(lasts), limit, MAX_ARCHIVE_BYTES);
        let mut answer: Vec<Value> = self.call(&script::TAKE_ENDED, shard).arg(args).run().await?;
        let name = script::TAKE_ENDED.name();
        if let [wait] = answer.as_slice() {
            return Ok(TakeEntries::Busy(Duration::from_millis(read(wait.clone(), name)?)));
        }
        let entries: Vec<Bytes> = read(answer.pop().ok_or(UNREADABLE)?, name)?;
        let (now, first): (u64, u64) = read(Value::Array(answer), name)?;
        let jobs = entries.chunks_exact(2).map(|pair| self.end(shard, pair[0].clone(), &pair[1], now));
        let jobs: Vec<_> = join_all(jobs).await.into_iter().collect::<Result<_, _>>()?;
        let last = entries.iter().step_by(2).last().map(head).unwrap_or_default();
        let part = OutboxPart { first, count: jobs.len() as u64, last };
        Ok(TakeEntries::Taken(ArchiveEntries { part, jobs }))
    }

    /// Removes the entries of a part, without those that were removed since; none if the part is not at the front or
    /// other entries have its numbers. Ends the archiver's claim. Returns how many entries are left.
    pub async fn remove_ended(
        &self,
        shard: Shard,
        archiver: &str,
        part: &OutboxPart,
    ) -> Result<u64, StoreError> {
        let args = (archiver, part.first, part.count, &part.last[..]);
        self.call(&script::REMOVE_ENDED, shard).arg(args).run().await
    }

    /// Removes the first `n` entries and counts them as dropped. Returns how many are left.
    pub async fn drop_ended(&self, shard: Shard, n: u64) -> Result<u64, StoreError> {
        self.call(&script::REMOVE_ENDED, shard).arg(("", "", n, "")).run().await
    }

    /// Converts an entry for the archiver, and reads a large payload. Logs a damaged entry and returns `None` for it.
    async fn end(
        &self,
        shard: Shard,
        entry: Bytes,
        log: &Bytes,
        now: u64,
    ) -> Result<Option<ArchivedJob>, StoreError> {
        let name = head(&entry);
        let Entry { kind, has_body, at, head, tail } = match Entry::parse(entry) {
            Ok(entry) => entry,
            Err(error) => {
                tracing::error!(shard = shard.0, %error, "an end cannot be archived");
                return Ok(None);
            }
        };
        let (mut packed, mut is_kept) = (Some(tail.payload.clone()), has_body);
        if has_body && head.is_external {
            let get = self.command("GET", shard, "an archived payload").arg(self.keys.archived(shard, &name));
            let stored: Option<Bytes> = get.run().await?;
            packed = stored.and_then(|stored| tail.external(stored));
            is_kept = packed.is_some();
        }
        let timeout = head.timeout;
        let delivery: Option<Delivery> =
            packed.and_then(|packed| payload::unpack(&packed, tail.origin, timeout, tail.tags.clone()));
        let (first_due, former_attempts) = (head.first_due, head.former_attempts);
        let job = ArchivedJob::ended(kind, head.into_job(tail.key, tail.tags));
        let keep = self.options.attempt_retention().time;
        let log = Some(log.clone()).filter(|log| !log.is_empty());
        let attempts = shown(log, Some(job.created.as_millis()), now, keep).unwrap_or_default();
        let has_body = is_kept && delivery.is_some();
        Ok(Some(ArchivedJob { kind, at, job, first_due, delivery, has_body, former_attempts, attempts }))
    }
}

/// Returns the head of an entry, or all of an entry that is shorter.
fn head(entry: &Bytes) -> Bytes {
    entry.slice(..entry.len().min(HEAD))
}

/// An entry in the format of `prelude/archive.lua`.
struct Entry {
    kind: EndedState,
    has_body: bool,
    at: Timestamp,
    head: FixedFields,
    tail: OptionalFields,
}

impl Entry {
    fn parse(mut entry: Bytes) -> Result<Self, StoreError> {
        if entry.remaining() < HEAD {
            return Err(UNREADABLE);
        }
        let code = entry.get_u8();
        let kind = EndedState::from_code(code & !HAS_BODY).ok_or(UNREADABLE)?;
        let at = Timestamp::from_millis(entry.get_uint(6));
        entry.advance(12);
        let (lane, job_state) = (part(&mut entry)?, part(&mut entry)?);
        let lane = std::str::from_utf8(&lane).map_err(|_| UNREADABLE)?;
        let head = FixedFields::parse(State::Dead, job_state, &entry)?;
        let tail = OptionalFields::parse(lane, entry)?;
        Ok(Self { kind, has_body: code & HAS_BODY != 0, at, head, tail })
    }
}

fn pack(settings: &ArchiveSettings) -> u64 {
    let mut bits = u64::from(settings.states.bits()) | ATTACHED;
    if settings.with_bodies {
        bits |= WITH_BODIES;
    }
    match settings.when_full {
        WhenFull::Stall => bits,
        WhenFull::Drop => bits | DROPS,
    }
}

fn unpack(bits: u64, bound: u64) -> Option<ArchiveSettings> {
    let states = EndedStates::from_bits(bits.to_be_bytes()[7]);
    let when_full = if bits & DROPS != 0 { WhenFull::Drop } else { WhenFull::Stall };
    let settings = ArchiveSettings { states, with_bodies: bits & WITH_BODIES != 0, bound, when_full };
    (bits & ATTACHED != 0).then_some(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_as_they_were_packed() {
        for (with_bodies, when_full) in [(false, WhenFull::Stall), (true, WhenFull::Drop)] {
            for states in [EndedStates::default(), EndedStates::all(), EndedStates::of([EndedState::Dead])] {
                let settings = ArchiveSettings { states, with_bodies, bound: 7, when_full };
                assert_eq!(unpack(pack(&settings) | FULL, 7), Some(settings));
            }
        }
        assert_eq!(unpack(0, 0), None);
    }

    #[test]
    fn an_entry_that_is_cut_off_is_unreadable_and_never_a_panic() {
        let record = [vec![1; 12], vec![0; 21], vec![3], b"abc".to_vec(), vec![0, 9]].concat();
        let fixed = [vec![1 | HAS_BODY], vec![0, 0, 0, 0, 3, 232], vec![7; 12]].concat();
        let state = [vec![0, 67], vec![0; 67]].concat();
        let entry = [fixed, vec![0, 11], b"t https://a".to_vec(), state, record].concat();
        let whole = Entry::parse(Bytes::from(entry.clone())).unwrap();
        assert_eq!((whole.kind, whole.at.as_millis(), whole.has_body), (EndedState::Done, 1000, true));
        for n in 0..entry.len() - 2 {
            assert!(Entry::parse(Bytes::copy_from_slice(&entry[..n])).is_err(), "{n} bytes");
        }
    }
}
