//! What the Lua prelude and this crate must agree on: the names of keys, the
//! layout's version, and how records and tombstones are packed.

mod keys;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use ringback_core::clock::Timestamp;
use ringback_core::contract::{Lease, StoreError, payload};
use ringback_core::job::{ContentHash, Job, JobKey, NewJob};
use ringback_core::lane::{LaneId, SettleHint};
use ringback_core::outcome::LastAttempt;
use ringback_core::state::State;

pub(crate) use self::keys::Keys;

/// The layout of keys and records. A store with another one is refused.
pub(crate) const VERSION: u16 = 5;
/// Payloads above this lie in a key of their own, so that what a script reads stays small.
const INLINE: usize = 2048;
const EXTERNAL: u8 = 2;
/// Bytes of a record before the id.
pub(crate) const RECORD: usize = 34;
/// A record without its payload has at least so many bytes before the size.
const APART: usize = 64;
/// Bytes of a run without its texts.
const RUN: usize = 67;
/// Bytes of a tombstone.
const TOMBSTONE: usize = 37;
/// Added to a tombstone's state where a hand-over was begun and never settled.
const DOUBT: u8 = 128;
/// The code of the state.
const DONE: u8 = 4;

/// A new job as the scripts of submit and import take it.
pub(crate) struct Packed {
    /// Its record behind due and created, which the script adds.
    pub(crate) rest: Vec<u8>,
    pub(crate) external: Vec<u8>,
}

pub(crate) fn pack(job: &NewJob, lane: LaneId) -> Packed {
    let id = job.key.id.as_str();
    let timeout = job.delivery.timeout.map_or(0, ringback_core::clock::millis_up);
    let payload = payload::pack(&job.delivery);
    let is_external = payload.len() > INLINE;
    let mut rest = Vec::with_capacity(RECORD + id.len() + if is_external { 4 } else { payload.len() });
    rest.push(if is_external { EXTERNAL } else { 0 });
    rest.extend_from_slice(&u32::try_from(timeout).unwrap_or(u32::MAX).to_be_bytes());
    rest.extend_from_slice(&job.content.0);
    rest.extend_from_slice(&lane.0);
    rest.push(u8::try_from(id.len()).expect("an id has at most 128 bytes"));
    rest.extend_from_slice(id.as_bytes());
    if !is_external {
        rest.extend_from_slice(&payload);
        return Packed { rest, external: Vec::new() };
    }
    // Small values would make a small pool a listpack, which is scanned in one step.
    rest.resize(rest.len().max(APART), 0);
    let size = u32::try_from(payload.len()).expect("a payload has at most some hundred KiB");
    rest.extend_from_slice(&size.to_be_bytes());
    Packed { rest, external: payload }
}

/// What a record begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Start {
    due: Timestamp,
    created: Timestamp,
    flags: u8,
    timeout: Option<Duration>,
    content: ContentHash,
    lane: LaneId,
}

impl Start {
    fn parse(mut raw: &[u8]) -> Result<Self, StoreError> {
        if raw.len() < RECORD {
            return Err(UNREADABLE);
        }
        let raw = &mut raw;
        let (due, created, flags) = (time(raw), time(raw), raw.get_u8());
        let timeout = raw.get_u32();
        let (mut content, mut lane) = (ContentHash::default(), LaneId::default());
        raw.copy_to_slice(&mut content.0);
        raw.copy_to_slice(&mut lane.0);
        let timeout = (timeout > 0).then(|| Duration::from_millis(u64::from(timeout)));
        Ok(Self { due, created, flags, timeout, content, lane })
    }
}

/// Where a job stands: what its record begins with, changed by its run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) state: State,
    start: Start,
    pub(crate) due: Timestamp,
    pub(crate) created: Timestamp,
    pub(crate) attempts: u32,
    pub(crate) failures: u32,
    pub(crate) lease: u64,
    pub(crate) bits: [u8; 8],
    pub(crate) deadline: Timestamp,
    last: Option<LastAttempt>,
    reason: Option<String>,
}

/// The names in a record, and its payload.
pub(crate) struct Tail {
    pub(crate) key: JobKey,
    pub(crate) origin: String,
    /// Its size when it lies in a key of its own.
    pub(crate) payload: Bytes,
}

const UNREADABLE: StoreError = StoreError::Unreadable("a record");

fn need(raw: &Bytes, bytes: usize) -> Result<(), StoreError> {
    if raw.remaining() < bytes { Err(UNREADABLE) } else { Ok(()) }
}

fn text(raw: &mut Bytes, length: usize) -> Result<String, StoreError> {
    need(raw, length)?;
    String::from_utf8(raw.split_to(length).to_vec()).map_err(|_| UNREADABLE)
}

fn time(raw: &mut impl Buf) -> Timestamp {
    Timestamp::from_millis(raw.get_uint(6))
}

fn state(code: u8) -> Result<State, StoreError> {
    State::ALL.get(usize::from(code).wrapping_sub(1)).copied().ok_or(UNREADABLE)
}

impl Head {
    /// Reads what a record begins with, and the run, which is empty before the first hand-over.
    pub(crate) fn parse(state: State, mut run: Bytes, record: &[u8]) -> Result<Self, StoreError> {
        let start = Start::parse(record)?;
        let mut head = Self {
            state,
            start,
            due: start.due,
            created: start.created,
            attempts: 0,
            failures: 0,
            lease: 0,
            bits: [0; 8],
            deadline: Timestamp::default(),
            last: None,
            reason: None,
        };
        if run.has_remaining() {
            need(&run, RUN)?;
            head.run(&mut run)?;
        }
        Ok(head)
    }

    fn run(&mut self, raw: &mut Bytes) -> Result<(), StoreError> {
        raw.advance(2);
        let due = time(raw);
        (self.attempts, self.failures) = (raw.get_u32(), raw.get_u32());
        raw.advance(1);
        self.lease = raw.get_u64();
        raw.copy_to_slice(&mut self.bits);
        self.deadline = time(raw);
        raw.advance(8);
        let created = time(raw);
        let (at, status, ms) = (time(raw), raw.get_u16(), raw.get_u32());
        let (error, reason) = (usize::from(raw.get_u8()), usize::from(raw.get_u8()));
        let error = text(raw, error)?;
        self.reason = Some(text(raw, reason)?).filter(|r| !r.is_empty());
        // Zero is what the record says.
        self.due = if due == Timestamp::default() { self.due } else { due };
        self.created = if created == Timestamp::default() { self.created } else { created };
        self.last = (at.as_millis() > 0).then(|| LastAttempt {
            at,
            status: (status > 0).then_some(status),
            error: Some(error).filter(|e| !e.is_empty()),
            duration: Duration::from_millis(u64::from(ms)),
        });
        Ok(())
    }

    pub(crate) const fn is_external(&self) -> bool {
        self.start.flags & EXTERNAL != 0
    }

    /// When the job came to this store.
    pub(crate) const fn arrived(&self) -> Timestamp {
        self.start.created
    }

    pub(crate) const fn timeout(&self) -> Option<Duration> {
        self.start.timeout
    }

    pub(crate) const fn content(&self) -> ContentHash {
        self.start.content
    }

    pub(crate) fn settle_hint(&self, unsettled: Arc<AtomicUsize>) -> SettleHint {
        let Start { lane, content, .. } = self.start;
        SettleHint { lane, content, is_external: self.is_external(), unsettled }
    }

    pub(crate) fn into_job(self, key: JobKey) -> Job {
        Job {
            key,
            state: self.state,
            due: self.due,
            created: self.created,
            attempts: self.attempts,
            failures: self.failures,
            last: self.last,
            reason: self.reason,
        }
    }
}

/// The number of the batch that a run's lease is of.
pub(crate) fn lease_number(run: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(run.get(17..25)?.try_into().ok()?))
}

impl Tail {
    /// Reads a record; its lane is told in words beside it.
    pub(crate) fn parse(lane: &str, mut raw: Bytes) -> Result<Self, StoreError> {
        need(&raw, RECORD)?;
        raw.advance(RECORD - 1);
        let id = usize::from(raw.get_u8());
        let id = text(&mut raw, id)?.parse().map_err(|_| UNREADABLE)?;
        let (topic, origin) = lane.split_once(' ').ok_or(UNREADABLE)?;
        let topic = topic.parse().map_err(|_| UNREADABLE)?;
        Ok(Self { key: JobKey { topic, id }, origin: origin.to_owned(), payload: raw })
    }
}

/// The tombstone that a job will have once it is done.
pub(crate) fn tombstone(lease: &Lease) -> [u8; TOMBSTONE] {
    let mut packed = [0; TOMBSTONE];
    let mut rest = packed.as_mut_slice();
    rest.put_u8(DONE);
    rest.put_u64(lease.grant().receipt.number);
    rest.put_slice(&six(lease.due.as_millis()));
    rest.put_slice(&six(lease.created.as_millis()));
    rest.put_slice(&lease.grant().hint.content.0);
    rest.put_u32(lease.attempt);
    rest.put_u32(lease.failures);
    packed
}

/// A number in six bytes, as times are kept.
pub(crate) fn six(number: u64) -> [u8; 6] {
    let [_, _, six @ ..] = number.to_be_bytes();
    six
}

/// What a tombstone tells of its job.
pub(crate) fn parse_tombstone(mut raw: Bytes, key: JobKey) -> Result<Job, StoreError> {
    need(&raw, TOMBSTONE)?;
    let state = state(raw.get_u8() % DOUBT)?;
    raw.advance(8);
    let (due, created) = (time(&mut raw), time(&mut raw));
    raw.advance(8);
    let (attempts, failures) = (raw.get_u32(), raw.get_u32());
    Ok(Job { key, state, due, created, attempts, failures, last: None, reason: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_records_are_unreadable_and_never_a_panic() {
        let record = [vec![1; RECORD - 1], vec![3], b"abc".to_vec()].concat();
        for n in 0..record.len() {
            assert!(Tail::parse("t https://a", Bytes::copy_from_slice(&record[..n])).is_err(), "{n} bytes");
        }
        for n in 0..RECORD {
            assert!(Head::parse(State::Ready, Bytes::new(), &record[..n]).is_err(), "{n} bytes");
        }
        for n in 1..RUN {
            assert!(Head::parse(State::Ready, Bytes::from(vec![1; n]), &record).is_err(), "{n} bytes");
        }
        assert!(Tail::parse("no-origin", Bytes::from(record.clone())).is_err());
        assert_eq!(Tail::parse("t https://a", Bytes::from(record)).unwrap().key.id.as_str(), "abc");
    }

    #[test]
    fn sizes_and_flags_are_those_of_the_prelude() {
        let records = include_str!("lua/prelude/records.lua");
        assert!(records.contains(&format!("local RECORD, RUN = {RECORD}, {RUN}")));
        assert!(records.contains(&format!("local CANCEL_REQUESTED, EXTERNAL = 1, {EXTERNAL}")));
        let ready = include_str!("lua/prelude/ready.lua");
        assert!(ready.contains(&format!("byte(lane) >= {}", LaneId::PULL)));
        let tombs = include_str!("lua/prelude/tombs.lua");
        assert!(tombs.contains(&format!("local DOUBT = {DOUBT}")));
        assert_eq!(State::ALL[usize::from(DONE) - 1], State::Done);
    }
}
