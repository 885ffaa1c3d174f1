//! Packs records, and reads records and job states, in the formats of `prelude/records.lua`.

mod tombstone;

use std::time::Duration;

use bytes::{Buf, Bytes};
use ringback_core::clock::Timestamp;
use ringback_core::job::{ContentHash, Job, JobId, JobKey, Locator, NewJob, Tags, Topic};
use ringback_core::lane::{Lane, LaneId};
use ringback_core::limits::{MAX_ERROR, MAX_REASON, truncated};
use ringback_core::outcome::LastAttempt;
use ringback_core::state::State;
use ringback_core::store_types::{LeaseId, StoreError, payload};
use ringback_core::token::Token;
use strum::VariantArray as _;

pub(crate) use self::tombstone::{parse_tombstone, tombstone};

/// Larger payloads have a key of their own, so that scripts read little.
const INLINE: usize = 2048;
/// The flag of a record whose payload has a compressed body.
const COMPRESSED: u8 = 1;
const EXTERNAL: u8 = 2;
const TOKEN: u8 = 4;
/// The flag of a record of an ordered topic, which the scripts set: its number (6) is before the payload.
const NUMBERED: u8 = 16;
/// The flag of the record of a firing, which has no key of its own.
const FIRING: u8 = 32;
/// The flag of a record with tags, which come after their length (2), before the number and the payload.
const TAGGED: u8 = 64;
/// The bytes of a record before the id.
pub(crate) const RECORD: usize = 34;
/// The place of the flags in a record.
const FLAGS: usize = 12;
/// The minimum size of a record with a large payload, in bytes, without due, created and the two sizes.
const APART: usize = 64;
/// The bytes of a job state without its texts.
const STATE: usize = 67;
/// The bytes of the last move in a job state.
const MOVE: usize = 14;
/// Packs numbers as one argument, which costs Redis less than an argument each.
pub(crate) fn doubles(numbers: impl IntoIterator<Item = f64>) -> Vec<u8> {
    numbers.into_iter().flat_map(f64::to_le_bytes).collect()
}

/// Packs the head of a group of jobs: their lane, how many arguments each job has, and how many jobs. What else they share is
/// to be added.
pub(crate) fn head(lane: LaneId, args: u8, jobs: usize) -> Vec<u8> {
    let jobs = u32::try_from(jobs).expect("a call has few jobs");
    let mut head = Vec::with_capacity(29);
    head.extend(lane.0);
    head.push(args);
    head.extend(jobs.to_be_bytes());
    head
}

/// A new job, packed for the scripts of submit and import.
pub(crate) struct Packed {
    /// The record without due and created, which the script adds.
    pub(crate) rest: Vec<u8>,
    pub(crate) external: Vec<u8>,
}

pub(crate) fn pack(job: &NewJob, lane: LaneId) -> Packed {
    let id = job.key.id.as_str();
    let timeout = job.delivery.timeout.map_or(0, ringback_core::clock::millis_up);
    let mut payload = payload::pack(&job.delivery);
    let decompressed = u32::try_from(payload::decompressed_size(&payload)).expect("a body has a limit");
    let is_external = payload.len() > INLINE;
    let token = job.if_exists.token().map(|token| token.0);
    let token = token.as_ref().map_or(&[][..], |token| token);
    let tags = job.delivery.tags.as_str();
    let size = RECORD + id.len() + token.len() + 2 + tags.len() + if is_external { 8 } else { payload.len() };
    let mut rest = Vec::with_capacity(size);
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    let flags = flag(decompressed > 0, COMPRESSED) | flag(is_external, EXTERNAL);
    rest.push(flags | flag(!token.is_empty(), TOKEN) | flag(!tags.is_empty(), TAGGED));
    rest.extend_from_slice(&u32::try_from(timeout).unwrap_or(u32::MAX).to_be_bytes());
    rest.extend_from_slice(&job.content.0);
    rest.extend_from_slice(&lane.0);
    rest.push(u8::try_from(id.len()).expect("an id has at most 128 bytes"));
    rest.extend_from_slice(id.as_bytes());
    rest.extend_from_slice(token);
    if !tags.is_empty() {
        rest.extend_from_slice(&u16::try_from(tags.len()).expect("tags are short").to_be_bytes());
        rest.extend_from_slice(tags.as_bytes());
    }
    if !is_external {
        rest.extend_from_slice(&payload);
        return Packed { rest, external: Vec::new() };
    }
    // Small values would make a small pool a listpack, which is scanned in one step.
    rest.resize(rest.len().max(APART), 0);
    let size = u32::try_from(payload.len()).expect("a payload has at most some hundred KiB");
    rest.extend_from_slice(&decompressed.to_be_bytes());
    rest.extend_from_slice(&size.to_be_bytes());
    // The token shows a reader whether the payload is still that of the record.
    payload.extend_from_slice(token);
    Packed { rest, external: payload }
}

/// Packs the job of a firing of a schedule.
pub(crate) fn pack_firing(job: &NewJob, lane: LaneId) -> Packed {
    let mut packed = pack(job, lane);
    packed.rest[0] |= FIRING;
    packed
}

/// The part of a record between the fixed part and the payload, beginning with the length of the id.
struct Names {
    id: JobId,
    token: Option<Token>,
    tags: Tags,
}

impl Names {
    /// Reads this part off the front of `raw`. `flags` are those of the record.
    fn take(flags: u8, raw: &mut Bytes) -> Result<Self, StoreError> {
        need(raw, 1)?;
        let id = usize::from(raw.get_u8());
        let id = text(raw, id)?.parse().map_err(|_| UNREADABLE)?;
        let token = if flags & TOKEN != 0 { Some(token(raw)?) } else { None };
        let mut tags = Tags::default();
        if flags & TAGGED != 0 {
            need(raw, 2)?;
            let length = usize::from(raw.get_u16());
            tags = Tags::from_stored(&text(raw, length)?).ok_or(UNREADABLE)?;
        }
        if flags & NUMBERED != 0 {
            need(raw, 6)?;
            raw.advance(6);
        }
        Ok(Self { id, token, tags })
    }
}

/// Returns the tags of a record, of which the payload may be missing. Fails if the record cannot be read.
pub(crate) fn tags_of(record: &[u8]) -> Result<Tags, StoreError> {
    match record.get(FLAGS) {
        Some(flags) if flags & TAGGED != 0 => {
            let mut rest = Bytes::copy_from_slice(record);
            need(&rest, RECORD)?;
            rest.advance(RECORD - 1);
            Ok(Names::take(*flags, &mut rest)?.tags)
        }
        _ => Ok(Tags::default()),
    }
}

/// The current data of a job: the fixed part of its record, changed by its job state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FixedFields {
    pub(crate) state: State,
    /// Whether the payload has a key of its own.
    pub(crate) is_external: bool,
    pub(crate) has_tags: bool,
    pub(crate) timeout: Option<Duration>,
    pub(crate) content: ContentHash,
    pub(crate) lane: LaneId,
    /// When this store accepted the job.
    pub(crate) arrived: Timestamp,
    pub(crate) due: Timestamp,
    /// The due time with which the job was submitted.
    pub(crate) first_due: Timestamp,
    pub(crate) created: Timestamp,
    pub(crate) attempts: u32,
    pub(crate) failures: u32,
    /// How many attempts former generations of the same key had.
    pub(crate) former_attempts: u32,
    pub(crate) lease: LeaseId,
    pub(crate) deadline: Timestamp,
    last: Option<LastAttempt>,
    reason: Option<String>,
}

/// The fields of a record after the fixed part, and those of its lane.
pub(crate) struct OptionalFields {
    pub(crate) key: JobKey,
    pub(crate) origin: String,
    /// The token of the submit, if it could take a job's place.
    pub(crate) token: Option<Token>,
    pub(crate) tags: Tags,
    /// The payload or, if that has a key of its own, padding and two sizes, the last that of the payload.
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

fn token(raw: &mut Bytes) -> Result<Token, StoreError> {
    need(raw, 8)?;
    let mut token = [0; 8];
    raw.copy_to_slice(&mut token);
    Ok(Token(token))
}

fn time(raw: &mut impl Buf) -> Timestamp {
    Timestamp::from_millis(raw.get_uint(6))
}

pub(crate) fn state(code: u8) -> Option<State> {
    State::VARIANTS.get(usize::from(code).wrapping_sub(1)).copied()
}

impl FixedFields {
    /// Reads a record's fixed part and the job state, empty before the first delivery. Fails if one is too short.
    pub(crate) fn parse(state: State, mut job_state: Bytes, mut record: &[u8]) -> Result<Self, StoreError> {
        if record.len() < RECORD {
            return Err(UNREADABLE);
        }
        let (due, created, flags) = (time(&mut record), time(&mut record), record.get_u8());
        let timeout = Some(record.get_u32()).filter(|ms| *ms > 0);
        let (mut content, mut lane) = (ContentHash::default(), LaneId::default());
        record.copy_to_slice(&mut content.0);
        record.copy_to_slice(&mut lane.0);
        let mut head = Self {
            state,
            is_external: flags & EXTERNAL != 0,
            has_tags: flags & TAGGED != 0,
            timeout: timeout.map(|ms| Duration::from_millis(ms.into())),
            content,
            lane,
            arrived: created,
            due,
            first_due: due,
            created,
            attempts: 0,
            failures: 0,
            former_attempts: 0,
            lease: LeaseId { number: 0, bits: [0; 8] },
            deadline: Timestamp::default(),
            last: None,
            reason: None,
        };
        if job_state.has_remaining() {
            need(&job_state, STATE)?;
            head.apply(&mut job_state)?;
        }
        Ok(head)
    }

    fn apply(&mut self, raw: &mut Bytes) -> Result<(), StoreError> {
        raw.advance(2);
        let due = time(raw);
        (self.attempts, self.failures) = (raw.get_u32(), raw.get_u32());
        raw.advance(1);
        self.lease.number = raw.get_u64();
        raw.copy_to_slice(&mut self.lease.bits);
        self.deadline = time(raw);
        raw.advance(8);
        let created = time(raw);
        let (at, status, ms) = (time(raw), raw.get_u16(), raw.get_u32());
        let (error, reason) = (usize::from(raw.get_u8()), usize::from(raw.get_u8()));
        let error = text(raw, error)?;
        self.reason = Some(text(raw, reason)?).filter(|r| !r.is_empty());
        // The last move, and the start of a generation that is not the first: the shard's last lease, and the attempts.
        if raw.remaining() >= MOVE + 12 {
            raw.advance(MOVE + 8);
            self.former_attempts = raw.get_u32();
        }
        // Zero means the record's value.
        self.due = Some(due).filter(|due| due.as_millis() > 0).unwrap_or(self.due);
        self.created = Some(created).filter(|at| at.as_millis() > 0).unwrap_or(self.created);
        self.last = (at.as_millis() > 0).then(|| LastAttempt {
            at,
            status: (status > 0).then_some(status),
            error: Some(error).filter(|e| !e.is_empty()),
            duration: Duration::from_millis(u64::from(ms)),
        });
        Ok(())
    }

    pub(crate) fn into_job(self, key: JobKey, tags: Tags) -> Job {
        Job {
            key,
            state: self.state,
            due: self.due,
            created: self.created,
            attempts: self.attempts,
            failures: self.failures,
            last: self.last,
            reason: self.reason,
            tags,
        }
    }
}

/// Returns the number of a job state's lease; `None` if the job state is too short.
pub(crate) fn lease_number(job_state: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(job_state.get(17..25)?.try_into().ok()?))
}

impl OptionalFields {
    /// Reads a whole record, with the name of its lane.
    pub(crate) fn parse(lane: &str, mut raw: Bytes) -> Result<Self, StoreError> {
        need(&raw, RECORD)?;
        let flags = raw[FLAGS];
        raw.advance(RECORD - 1);
        let Names { id, token, tags } = Names::take(flags, &mut raw)?;
        let Lane { topic, origin } = Lane::parse(lane).ok_or(UNREADABLE)?;
        let topic = Topic::from_stored(topic).ok_or(UNREADABLE)?;
        Ok(Self { key: JobKey { topic, id }, origin: origin.to_owned(), token, tags, payload: raw })
    }

    /// Returns the payload from `stored`, the value of its own key; `None` if another submit has taken the job's place
    /// since the record was read.
    pub(crate) fn external(&self, mut stored: Bytes) -> Option<Bytes> {
        let size = u32::from_be_bytes(*self.payload.last_chunk()?);
        let size = usize::try_from(size).ok().filter(|size| *size <= stored.len())?;
        let payload = stored.split_to(size);
        let is_of_this = match &self.token {
            // The script may have added a byte, so that the value has another length than the former one.
            Some(token) => stored.starts_with(&token.0),
            None => stored.is_empty(),
        };
        is_of_this.then_some(payload)
    }
}

/// Packs a number in six bytes, as times are packed.
pub(crate) fn six(number: u64) -> [u8; 6] {
    let [_, _, six @ ..] = number.to_be_bytes();
    six
}

/// Reads a number from big-endian bytes, such as a time in six bytes.
pub(crate) fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Packs a lease's number and random bits, as a job state has them.
pub(crate) fn pack_lease(lease: LeaseId) -> [u8; 16] {
    let mut packed = [0; 16];
    packed[..8].copy_from_slice(&lease.number.to_be_bytes());
    packed[8..].copy_from_slice(&lease.bits);
    packed
}

/// Appends an attempt and a reason, packed as at the end of a job state. Both texts are truncated to their limits.
pub(crate) fn push_last(packed: &mut Vec<u8>, last: &LastAttempt, reason: &str) {
    let error = truncated(last.error.as_deref().unwrap_or_default(), MAX_ERROR);
    let duration = u32::try_from(last.duration.as_millis()).unwrap_or(u32::MAX);
    packed.extend_from_slice(&six(last.at.as_millis()));
    packed.extend_from_slice(&last.status.unwrap_or(0).to_be_bytes());
    packed.extend_from_slice(&duration.to_be_bytes());
    let reason = truncated(reason, MAX_REASON);
    let length = |text: &str| u8::try_from(text.len()).unwrap_or(u8::MAX);
    packed.extend_from_slice(&[length(error), length(reason)]);
    packed.extend_from_slice(error.as_bytes());
    packed.extend_from_slice(reason.as_bytes());
}

pub(crate) fn locator(raw: &[u8]) -> Result<Locator, StoreError> {
    raw.try_into().map(Locator).map_err(|_| StoreError::Unreadable("a locator"))
}

#[cfg(test)]
mod tests;
