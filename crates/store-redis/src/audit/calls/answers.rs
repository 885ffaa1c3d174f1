//! What the calls of an audit answer, as values.

use redis::Value;
use ringback_core::contract::StoreError;
use ringback_core::state::State;

use crate::audit::told::{LaneRow, TopicRow};
use crate::audit::waiting::{List, Word};
use crate::audit::{Jobs, Lane};
use crate::layout::RECORD;
use crate::script::reply;

/// The bytes of the counts of a lane's states.
const COUNTS: usize = 16;
/// All bytes of a lane's row before its words.
pub(crate) const LANE_ROW: usize = COUNTS + 12;
/// Where a topic's row says whether it is paused.
pub(crate) const PAUSED: usize = 8;

/// What a shard says of itself, as of one moment.
pub(crate) struct Overview {
    /// accepted, delayed, ready, reserved, dead, done, cancelled, purged, the last lease, and how often
    /// a topic was paused or resumed. Nothing can move and leave all of them as they were: the only way
    /// round leads a job through a lease.
    pub(crate) ledger: [i64; 10],
    /// How many lanes have jobs, how many topics have jobs or are paused, how many are paused.
    pub(crate) sums: [i64; 3],
    /// Records.
    pub(crate) jobs: u64,
    pub(crate) dead_entries: u64,
    /// Of the lists of topics: those by name, and by hour.
    pub(crate) index_entries: u64,
    pub(crate) topic_entries: u64,
    pub(crate) wrong_moments: Vec<String>,
}

impl Overview {
    pub(crate) fn states(&self) -> Jobs {
        let [_, delayed, ready, reserved, dead, ..] = self.ledger;
        [delayed, ready, reserved, dead]
    }
}

pub(crate) const UNREADABLE: StoreError = StoreError::Unreadable("an audit's answer");

/// A page of records.
pub(crate) struct Records {
    pub(crate) states: Jobs,
    pub(crate) ready: Vec<u8>,
    pub(crate) slots: Vec<u8>,
    pub(crate) lanes: Vec<(Lane, Jobs)>,
    pub(crate) bad: Vec<Bad>,
}

/// Something that is wrong with a record.
pub(crate) struct Bad {
    pub(crate) what: String,
    pub(crate) locator: Vec<u8>,
    pub(crate) state: u8,
    pub(crate) words: String,
    record: Vec<u8>,
}

impl Bad {
    pub(crate) fn id(&self) -> Option<String> {
        id_of(&self.record)
    }

    pub(crate) fn state_name(&self) -> &'static str {
        state_name(self.state)
    }
}

/// The id that a record begins with.
pub(crate) fn id_of(record: &[u8]) -> Option<String> {
    let length = usize::from(*record.get(RECORD - 1)?);
    let id = record.get(RECORD..RECORD + length)?;
    Some(String::from_utf8_lossy(id).into_owned())
}

/// A state by its number in records.
pub(crate) fn state_name(code: u8) -> &'static str {
    State::ALL.get(usize::from(code).wrapping_sub(1)).map_or("unknown", |state| state.name())
}

/// A page of lanes and topics.
pub(crate) struct Lanes {
    pub(crate) lanes: Vec<(Lane, LaneRow)>,
    pub(crate) topics: Vec<(Box<str>, TopicRow)>,
    /// What lists do not show, as they would name it.
    pub(crate) unlisted: Vec<Vec<u8>>,
    /// Those that nothing leads to, with their words.
    pub(crate) lost: Vec<(Vec<u8>, String)>,
}

/// What was read of some lists.
pub(crate) struct Read {
    /// How many were read to their beginning.
    pub(crate) lists: usize,
    /// How many entries of the next one were read.
    pub(crate) skip: usize,
    pub(crate) entries: Vec<Vec<u8>>,
}

/// What became of something that was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mend {
    /// Nothing was wrong any more when it was looked at again.
    MovedOn,
    /// It is put right.
    Mended,
    /// It is not put right: nobody can, or was to.
    Left,
}

pub(crate) fn mended(answer: Value) -> Result<Vec<Mend>, StoreError> {
    let answers = reply::list(answer)?;
    let mends = answers.iter().map(|n| match reply::int(n)? {
        0 => Ok(Mend::MovedOn),
        1 => Ok(Mend::Mended),
        _ => Ok(Mend::Left),
    });
    mends.collect()
}

pub(crate) fn bad(answer: Value) -> Result<Bad, StoreError> {
    let parts: Result<[Value; 5], _> = reply::list(answer)?.try_into();
    let Ok([what, locator, state, words, record]) = parts else { return Err(UNREADABLE) };
    Ok(Bad {
        what: reply::text(what)?,
        locator: reply::bytes(locator)?.to_vec(),
        state: reply::number(&state)?,
        words: lossy(words)?,
        record: reply::bytes(record)?.to_vec(),
    })
}

pub(crate) fn word(answer: Value) -> Result<Word, StoreError> {
    let mut parts = reply::list(answer)?.into_iter();
    let (Some(what), Some(state)) = (parts.next(), parts.next()) else { return Ok(Word::MovedOn) };
    let (what, state) = (reply::text(what)?, reply::number::<u8>(&state)?);
    match (what.as_str(), parts.next(), parts.next()) {
        ("again", ..) if state == List::Ready.state() => Ok(Word::Again(List::Ready)),
        ("again", ..) if state == List::Slot.state() => Ok(Word::Again(List::Slot)),
        ("lost", Some(words), Some(record)) => {
            Ok(Word::Lost { state, words: lossy(words)?, record: reply::bytes(record)?.to_vec() })
        }
        _ => Err(UNREADABLE),
    }
}

pub(crate) fn pairs(answer: Value) -> Result<Vec<(Value, Value)>, StoreError> {
    let mut flat = reply::list(answer)?.into_iter();
    let mut pairs = Vec::with_capacity(flat.len() / 2);
    while let (Some(one), Some(other)) = (flat.next(), flat.next()) {
        pairs.push((one, other));
    }
    Ok(pairs)
}

/// The counts that a lane's row begins with.
pub(crate) fn counts(row: &[u8]) -> Result<Jobs, StoreError> {
    let mut jobs = [0; 4];
    let (numbers, _) = row.get(..COUNTS).ok_or(UNREADABLE)?.as_chunks();
    jobs.iter_mut().zip(numbers).for_each(|(jobs, raw)| *jobs = i32::from_be_bytes(*raw).into());
    Ok(jobs)
}

pub(crate) fn lane_of(value: Value) -> Result<Lane, StoreError> {
    reply::bytes(value)?.as_ref().try_into().map_err(|_| UNREADABLE)
}

/// What may be damaged is shown as well as it can be.
pub(crate) fn lossy(value: Value) -> Result<String, StoreError> {
    Ok(String::from_utf8_lossy(&reply::bytes(value)?).into_owned())
}
