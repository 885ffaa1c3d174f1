//! What the Lua prelude and this crate must agree on: the names of keys, the
//! layout's version, and how records and tombstones are packed.

use std::time::Duration;

use bytes::{Buf, Bytes};

use crate::clock::Timestamp;
use crate::job::{ContentHash, Job, JobKey, Locator, NewJob, Topic};
use crate::outcome::LastAttempt;
use crate::state::State;
use crate::store::{Shard, StoreError, payload};

/// The layout of keys and records. A store with another one is refused.
pub(super) const VERSION: u16 = 2;
/// Payloads above this lie in a key of their own, so that what a script reads stays small.
const INLINE: usize = 2048;
#[cfg(test)]
const CANCEL_REQUESTED: u8 = 1;
const EXTERNAL: u8 = 2;
/// Bytes of a head without the run section; a record begins with so many.
pub(super) const HEAD: usize = 26;
/// Bytes of the run section without its texts.
const RUN: usize = 53;
/// Bytes of a record behind its head, without texts.
const TAIL: usize = 4;
/// Added to a tombstone's state where a hand-over was begun and never settled.
const DOUBT: u8 = 128;

/// The base names of the shards and of the installation.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    prefix: String,
    shards: Vec<String>,
}

impl Keys {
    pub(super) fn new(prefix: &str, shards: u16) -> Self {
        let bases = tags(shards).into_iter().map(|tag| format!("{prefix}:{{{tag}}}")).collect();
        Self { prefix: prefix.to_owned(), shards: bases }
    }

    pub(super) fn shard(&self, shard: Shard) -> &str {
        &self.shards[usize::from(shard.0)]
    }

    pub(super) fn installation(&self) -> String {
        format!("{}:{{meta}}", self.prefix)
    }

    pub(super) fn channel(&self) -> String {
        format!("{}:wake", self.prefix)
    }

    pub(super) fn external(&self, shard: Shard, locator: Locator) -> Vec<u8> {
        [self.shard(shard).as_bytes(), b":body:", &locator.0].concat()
    }

    /// The shard whose tag a wake-up names.
    pub(super) fn by_tag(&self, tag: &str) -> Option<Shard> {
        let wanted = format!("{}:{{{tag}}}", self.prefix);
        let index = self.shards.iter().position(|base| *base == wanted)?;
        u16::try_from(index).ok().map(Shard)
    }
}

/// Hash tags whose slots lie one in each of `count` equal parts of the 16,384 slots, so
/// that the shards spread evenly over the masters of a cluster, whatever their number.
fn tags(count: u16) -> Vec<String> {
    let slot = |tag: &str| u32::from(crc16::State::<crc16::XMODEM>::calculate(tag.as_bytes()) % 16_384);
    let part = |tag: &str| slot(tag) * u32::from(count) / 16_384;
    let numbers = || (0_u32..).map(|n| n.to_string());
    (0..u32::from(count)).filter_map(|i| numbers().find(|tag| part(tag) == i)).collect()
}

/// A new job as the scripts of submit and import take it.
pub(super) struct Packed {
    pub(super) timeout: [u8; 4],
    pub(super) tail: Vec<u8>,
    pub(super) external: Vec<u8>,
}

pub(super) fn pack(job: &NewJob) -> Packed {
    let (topic, id) = (job.key.topic.as_str(), job.key.id.as_str());
    let origin = job.delivery.callback.origin();
    let timeout = job.delivery.timeout.map_or(0, crate::clock::millis_up);
    let timeout = u32::try_from(timeout).unwrap_or(u32::MAX).to_be_bytes();
    let lane = format!("{topic} {origin}");
    let payload = payload::pack(&job.delivery);
    let mut tail = Vec::with_capacity(TAIL + lane.len() + id.len() + payload.len());
    tail.push(u8::try_from(topic.len()).expect("a topic has at most 64 bytes"));
    tail.push(u8::try_from(id.len()).expect("an id has at most 128 bytes"));
    tail.extend_from_slice(&u16::try_from(lane.len()).expect("a URL has at most 2048 bytes").to_be_bytes());
    tail.extend_from_slice(lane.as_bytes());
    tail.extend_from_slice(id.as_bytes());
    if payload.len() <= INLINE {
        tail.extend_from_slice(&payload);
        return Packed { timeout, tail, external: Vec::new() };
    }
    let size = u32::try_from(payload.len()).expect("a payload has at most some hundred KiB");
    tail.extend_from_slice(&size.to_be_bytes());
    Packed { timeout, tail, external: payload }
}

/// The changing part of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) state: State,
    flags: u8,
    pub(super) due: Timestamp,
    pub(super) created: Timestamp,
    pub(super) content: ContentHash,
    pub(super) attempts: u32,
    pub(super) failures: u32,
    pub(super) lease: u64,
    pub(super) bits: [u8; 8],
    pub(super) deadline: Timestamp,
    pub(super) timeout: Option<Duration>,
    last: Option<LastAttempt>,
    reason: Option<String>,
}

/// The part of a record that was submitted.
pub(super) struct Tail {
    pub(super) key: JobKey,
    pub(super) origin: String,
    /// Its size when it lies in a key of its own.
    pub(super) payload: Bytes,
}

const UNREADABLE: StoreError = StoreError::Unreadable("a record");

fn need(raw: &Bytes, bytes: usize) -> Result<(), StoreError> {
    if raw.remaining() < bytes { Err(UNREADABLE) } else { Ok(()) }
}

fn text(raw: &mut Bytes, length: usize) -> Result<String, StoreError> {
    need(raw, length)?;
    String::from_utf8(raw.split_to(length).to_vec()).map_err(|_| UNREADABLE)
}

fn time(raw: &mut Bytes) -> Timestamp {
    Timestamp::from_millis(raw.get_uint(6))
}

fn state(code: u8) -> Result<State, StoreError> {
    State::ALL.get(usize::from(code).wrapping_sub(1)).copied().ok_or(UNREADABLE)
}

impl Head {
    /// Reads a head.
    pub(super) fn parse(mut raw: Bytes) -> Result<Self, StoreError> {
        let raw = &mut raw;
        need(raw, HEAD)?;
        let (state, flags, timeout) = (state(raw.get_u8())?, raw.get_u8(), raw.get_u32());
        let mut head = Self {
            state,
            flags,
            timeout: (timeout > 0).then(|| Duration::from_millis(u64::from(timeout))),
            due: time(raw),
            created: time(raw),
            content: ContentHash([0; 8]),
            attempts: 0,
            failures: 0,
            lease: 0,
            bits: [0; 8],
            deadline: Timestamp::default(),
            last: None,
            reason: None,
        };
        raw.copy_to_slice(&mut head.content.0);
        if raw.has_remaining() {
            need(raw, RUN)?;
            (head.attempts, head.failures) = (raw.get_u32(), raw.get_u32());
            raw.advance(1);
            head.lease = raw.get_u64();
            raw.copy_to_slice(&mut head.bits);
            head.deadline = time(raw);
            raw.advance(8);
            let (at, status, ms) = (time(raw), raw.get_u16(), raw.get_u32());
            let (error, reason) = (usize::from(raw.get_u8()), usize::from(raw.get_u8()));
            let error = text(raw, error)?;
            head.reason = Some(text(raw, reason)?).filter(|r| !r.is_empty());
            head.last = (at.as_millis() > 0).then(|| LastAttempt {
                at,
                status: (status > 0).then_some(status),
                error: Some(error).filter(|e| !e.is_empty()),
                duration: Duration::from_millis(u64::from(ms)),
            });
        }
        Ok(head)
    }

    pub(super) fn is_external(&self) -> bool {
        self.flags & EXTERNAL != 0
    }

    pub(super) fn into_job(self, key: JobKey) -> Job {
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

impl Tail {
    /// Reads what follows the head in a record.
    pub(super) fn parse(mut raw: Bytes) -> Result<Self, StoreError> {
        need(&raw, HEAD + TAIL)?;
        raw.advance(HEAD);
        let (topic, id) = (usize::from(raw.get_u8()), usize::from(raw.get_u8()));
        let lane = usize::from(raw.get_u16());
        let lane = text(&mut raw, lane)?;
        let (topic, origin) = lane.split_at_checked(topic).ok_or(UNREADABLE)?;
        let topic: Topic = topic.parse().map_err(|_| UNREADABLE)?;
        let origin = origin.strip_prefix(' ').ok_or(UNREADABLE)?.to_owned();
        let id = text(&mut raw, id)?.parse().map_err(|_| UNREADABLE)?;
        Ok(Self { key: JobKey { topic, id }, origin, payload: raw })
    }
}

/// What a tombstone tells of its job.
pub(super) fn parse_tombstone(mut raw: Bytes, key: JobKey) -> Result<Job, StoreError> {
    need(&raw, 43)?;
    let state = state(raw.get_u8() % DOUBT)?;
    raw.advance(6 + 8);
    let (due, created) = (time(&mut raw), time(&mut raw));
    raw.advance(8);
    let (attempts, failures) = (raw.get_u32(), raw.get_u32());
    Ok(Job { key, state, due, created, attempts, failures, last: None, reason: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_spread_evenly_over_the_masters_of_a_cluster() {
        for count in [1, 3, 4, 8, 16, 64] {
            let tags = tags(count);
            assert_eq!(tags.len(), usize::from(count));
            let slot =
                |t: &String| u32::from(crc16::State::<crc16::XMODEM>::calculate(t.as_bytes()) % 16_384);
            let mut on_master = [0; 3];
            tags.iter().for_each(|t| on_master[(slot(t) * 3 / 16_384) as usize] += 1);
            let (least, most) = (on_master.iter().min().unwrap(), on_master.iter().max().unwrap());
            assert!(most - least <= 1, "{count}: {on_master:?}");
        }
    }

    #[test]
    fn a_shard_is_found_by_its_tag() {
        let keys = Keys::new("ringback", 8);
        for n in 0..8 {
            let base = keys.shard(Shard(n)).to_owned();
            let tag = base.trim_start_matches("ringback:{").trim_end_matches('}');
            assert_eq!(keys.by_tag(tag), Some(Shard(n)));
        }
        assert_eq!(keys.by_tag("meta"), None);
    }

    #[test]
    fn short_records_are_unreadable_not_a_panic() {
        let whole = [vec![3, 0], vec![1; HEAD - 2], vec![0; RUN]].concat();
        for n in (0..HEAD).chain(HEAD + 1..HEAD + RUN) {
            assert!(Head::parse(Bytes::copy_from_slice(&whole[..n])).is_err(), "{n} bytes");
        }
        assert!(Head::parse(Bytes::from(vec![7; HEAD])).is_err());
        for n in [0, HEAD, HEAD + TAIL, 80] {
            assert!(Tail::parse(Bytes::from(vec![255; n])).is_err(), "{n} bytes");
        }
        assert_eq!(Head::parse(Bytes::from(whole)).unwrap().state, State::Reserved);
    }

    #[test]
    fn the_flags_are_those_of_the_prelude() {
        let records = include_str!("lua/prelude/records.lua");
        assert!(records.contains(&format!("HEAD = K .. ':heads', K .. ':pool', {HEAD}")));
        assert!(
            records.contains(&format!("local CANCEL_REQUESTED, EXTERNAL = {CANCEL_REQUESTED}, {EXTERNAL}"))
        );
        let tombs = include_str!("lua/prelude/tombs.lua");
        assert!(tombs.contains(&format!("local DOUBT = {DOUBT}")));
    }
}
