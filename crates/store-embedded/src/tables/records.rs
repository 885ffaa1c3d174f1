//! Records: the head of each job, rewritten at each edge; its body, written once; and the
//! index from its name to its number. Numbers grow, so that new jobs stand side by side.
//!
//! The record of an ended job stays as its tombstone, without a body.

use std::time::Duration;

use redb::{ReadTransaction, ReadableTable as _, TableDefinition, WriteTransaction};
use serde::{Deserialize, Serialize};

#[cfg(test)]
use super::Entry;
use super::rows::{Journal, Name, Rows};
use ringback_core::contract::StoreError;
use ringback_core::limits::{MAX_ERROR, truncated};
use ringback_core::outcome::LastAttempt;
use ringback_core::state::State;

pub(crate) const IDS: TableDefinition<'static, [u8; 12], u64> = TableDefinition::new("ids");
pub(crate) const JOBS: TableDefinition<'static, u64, &[u8]> = TableDefinition::new("jobs");
pub(crate) const BODIES: TableDefinition<'static, u64, &[u8]> = TableDefinition::new("bodies");

/// The changing part of a job, and what its edges need to know. Packed with postcard.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Its number, which is the key.
    #[serde(skip)]
    pub(crate) number: u64,
    pub(crate) shard: u16,
    pub(crate) locator: [u8; 12],
    pub(crate) content: [u8; 8],
    /// In ms, as all times here.
    pub(crate) created: u64,
    /// When it came here, if it was accepted elsewhere before.
    pub(crate) came: Option<u64>,
    pub(crate) due: u64,
    /// Topic and origin are empty once the job has ended; the origin of one for pull always.
    pub(crate) topic: Box<str>,
    pub(crate) origin: Box<str>,
    /// Of an attempt, in ms; 0 for the default.
    pub(crate) timeout: u64,
    pub(crate) attempts: u32,
    pub(crate) failures: u32,
    /// Leases in a row that ran out without an outcome.
    pub(crate) lost: u32,
    /// The last lease that was settled; 0 for none.
    pub(crate) settled: u64,
    pub(crate) last: Option<Last>,
    pub(crate) stage: Stage,
    /// Of the last call that moved the job by its name. Its bytes follow the packed record,
    /// where there is one.
    #[serde(skip)]
    pub(crate) token: Option<[u8; TOKEN]>,
}

/// The last failed attempt.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Last {
    pub(crate) at: u64,
    pub(crate) status: Option<u16>,
    pub(crate) error: Option<Box<str>>,
    pub(crate) ms: u64,
}

impl From<&LastAttempt> for Last {
    fn from(last: &LastAttempt) -> Self {
        let error = last.error.as_deref().map(|error| truncated(error, MAX_ERROR));
        Self {
            at: last.at.as_millis(),
            status: last.status,
            error: error.filter(|error| !error.is_empty()).map(Into::into),
            ms: u64::try_from(last.duration.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// The state, with what finds the job's entry in the index of that state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Stage {
    /// Its entry stands under the due time.
    Delayed,
    Ready {
        position: i64,
    },
    Reserved {
        lease: u64,
        bits: [u8; 8],
        deadline: u64,
        /// A cancel was asked for; the settle obeys it.
        cancel: bool,
        /// So long after its deadline its entry stands, in ms: where it has run out, and waits to
        /// be settled. Written behind the others, where it is anything.
        #[serde(skip)]
        put_off: u64,
    },
    Dead {
        since: u64,
        reason: Box<str>,
    },
    Done {
        at: u64,
    },
    Cancelled {
        at: u64,
        /// A hand-over was begun and never settled.
        doubt: bool,
    },
}

/// The bytes of a token, and of what stands behind it.
const TOKEN: usize = 8;
const PUT_OFF: usize = 6;

impl Record {
    pub(crate) const fn state(&self) -> State {
        match self.stage {
            Stage::Delayed => State::Delayed,
            Stage::Ready { .. } => State::Ready,
            Stage::Reserved { .. } => State::Reserved,
            Stage::Dead { .. } => State::Dead,
            Stage::Done { .. } => State::Done,
            Stage::Cancelled { .. } => State::Cancelled,
        }
    }

    /// When it ended, if it has.
    pub(crate) const fn ended(&self) -> Option<u64> {
        match self.stage {
            Stage::Done { at } | Stage::Cancelled { at, .. } => Some(at),
            Stage::Delayed | Stage::Ready { .. } | Stage::Reserved { .. } | Stage::Dead { .. } => None,
        }
    }

    /// Why it is dead, if it is.
    pub(crate) fn reason(&self) -> Option<&str> {
        match &self.stage {
            Stage::Dead { reason, .. } => Some(reason),
            Stage::Delayed
            | Stage::Ready { .. }
            | Stage::Reserved { .. }
            | Stage::Done { .. }
            | Stage::Cancelled { .. } => None,
        }
    }

    /// An attempt's deadline, if the job names one.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        (self.timeout > 0).then(|| Duration::from_millis(self.timeout))
    }

    /// When it began to live in this store.
    pub(crate) fn arrived(&self) -> u64 {
        self.came.unwrap_or(self.created)
    }

    /// The lane it is reserved from: topic and origin of the URL.
    pub(crate) fn lane(&self) -> String {
        format!("{} {}", self.topic, self.origin)
    }

    /// Whether it waits for a consumer.
    pub(crate) fn is_pull(&self) -> bool {
        self.origin.is_empty()
    }

    pub(crate) fn pack(&self) -> Vec<u8> {
        let mut packed = postcard::to_stdvec(self).expect("plain data always serialises");
        packed.extend(self.token.iter().flatten());
        if let Stage::Reserved { put_off: 1.., .. } = self.stage {
            packed.extend_from_slice(&self.put_off().to_be_bytes()[8 - PUT_OFF..]);
        }
        packed
    }

    pub(crate) fn unpack(number: u64, raw: &[u8]) -> Option<Self> {
        let (record, rest) = postcard::take_from_bytes::<Self>(raw).ok()?;
        let is_late = [PUT_OFF, TOKEN + PUT_OFF].contains(&rest.len());
        let (token, late) = rest.split_at(if is_late { rest.len() - PUT_OFF } else { rest.len() });
        let mut record = Self { number, token: token.try_into().ok(), ..record };
        if let Stage::Reserved { put_off, .. } = &mut record.stage {
            *put_off = late.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        }
        Some(record)
    }

    fn put_off(&self) -> u64 {
        if let Stage::Reserved { put_off, .. } = self.stage { put_off } else { 0 }
    }
}

/// The part of a job that no edge changes: its id and its payload.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) id: String,
    pub(crate) payload: bytes::Bytes,
}

impl Body {
    pub(crate) fn pack(id: &str, payload: &[u8]) -> Vec<u8> {
        let length = u8::try_from(id.len()).expect("an id has at most 128 bytes");
        [&[length], id.as_bytes(), payload].concat()
    }

    pub(crate) fn unpack(raw: &[u8]) -> Option<Self> {
        let (id, payload) = Self::split(raw)?;
        Some(Self { id: id.to_owned(), payload: bytes::Bytes::copy_from_slice(payload) })
    }

    /// Id and payload.
    fn split(raw: &[u8]) -> Option<(&str, &[u8])> {
        let (length, rest) = raw.split_first()?;
        let (id, payload) = rest.split_at_checked(usize::from(*length))?;
        Some((std::str::from_utf8(id).ok()?, payload))
    }
}

pub(crate) struct Records<'t> {
    pub(crate) ids: Rows<'t, [u8; 12], u64>,
    pub(crate) jobs: Rows<'t, u64, &'static [u8]>,
    pub(crate) bodies: Rows<'t, u64, &'static [u8]>,
    /// The number of the next new job, once it was asked for.
    next: Option<u64>,
}

impl<'t> Records<'t> {
    pub(crate) fn open(txn: &'t WriteTransaction, journal: &'t Journal) -> Result<Self, StoreError> {
        Ok(Self {
            ids: Rows::open(txn, journal, Name::Ids, IDS)?,
            jobs: Rows::open(txn, journal, Name::Jobs, JOBS)?,
            bodies: Rows::open(txn, journal, Name::Bodies, BODIES)?,
            next: None,
        })
    }

    /// A job by its name, ended ones included.
    pub(crate) fn find(&self, locator: [u8; 12]) -> Result<Option<Record>, StoreError> {
        let Some(number) = self.ids.get(locator)?.map(|n| n.value()) else { return Ok(None) };
        self.get(number)
    }

    /// A job by its number. One that cannot be read is passed over like a missing one, so
    /// that it stops nobody else's jobs.
    pub(crate) fn get(&self, number: u64) -> Result<Option<Record>, StoreError> {
        let Some(raw) = self.jobs.get(number)? else { return Ok(None) };
        let record = Record::unpack(number, raw.value());
        if record.is_none() {
            tracing::error!(job.number = number, "a record cannot be read");
        }
        Ok(record)
    }

    pub(crate) fn body(&self, number: u64) -> Result<Option<Body>, StoreError> {
        Ok(self.bodies.get(number)?.and_then(|raw| Body::unpack(raw.value())))
    }

    /// The id of a job that has not ended.
    pub(crate) fn id(&self, number: u64) -> Result<Option<String>, StoreError> {
        Ok(self.bodies.get(number)?.and_then(|raw| Some(Body::split(raw.value())?.0.to_owned())))
    }

    /// Gives a new job its number; `put` is to follow. A number is used again only when
    /// nothing that stood behind it is left.
    pub(crate) fn add(&mut self, record: &mut Record, body: &[u8]) -> Result<(), StoreError> {
        record.number = match self.next {
            Some(next) => next,
            None => self.jobs.last()?.map_or(1, |(last, _)| last.value() + 1),
        };
        self.next = Some(record.number + 1);
        self.ids.insert(record.locator, record.number)?;
        self.bodies.insert(record.number, body)?;
        Ok(())
    }

    /// Leads from a job's name to it again; false where it did.
    pub(crate) fn name(&mut self, record: &Record) -> Result<bool, StoreError> {
        let is_led = self.ids.get(record.locator)?.is_some();
        if !is_led {
            self.ids.insert(record.locator, record.number)?;
        }
        Ok(!is_led)
    }

    pub(crate) fn put(&mut self, record: &Record) -> Result<(), StoreError> {
        self.jobs.insert(record.number, record.pack().as_slice())?;
        Ok(())
    }

    pub(crate) fn drop_body(&mut self, number: u64) -> Result<(), StoreError> {
        self.bodies.remove(number)?;
        Ok(())
    }

    /// Looks at every record.
    pub(crate) fn each(&self, mut look: impl FnMut(&Record)) -> Result<(), StoreError> {
        for row in self.jobs.iter()? {
            let (number, raw) = row?;
            Record::unpack(number.value(), raw.value()).iter().for_each(&mut look);
        }
        Ok(())
    }

    /// Forgets a job altogether.
    pub(crate) fn remove(&mut self, record: &Record) -> Result<(), StoreError> {
        self.drop_body(record.number)?;
        self.jobs.remove(record.number)?;
        self.ids.remove(record.locator)?;
        Ok(())
    }
}

/// Some jobs, and the number to go on from, unless those were the last.
pub(crate) struct Stretch {
    pub(crate) found: Vec<(Record, Body)>,
    pub(crate) next: Option<u64>,
}

/// Reads on through the jobs that have not ended, from a number on: at most `look` of them,
/// and bodies of about so many bytes.
pub(crate) fn read_on(
    txn: &ReadTransaction,
    from: u64,
    look: usize,
    bytes: usize,
) -> Result<Stretch, StoreError> {
    let (jobs, mut left, mut found) = (txn.open_table(JOBS)?, bytes, Vec::new());
    // Only jobs that have not ended have a body.
    for (looked, row) in txn.open_table(BODIES)?.range(from..)?.enumerate() {
        let (number, raw) = row?;
        let number = number.value();
        if looked == look || left == 0 {
            return Ok(Stretch { found, next: Some(number) });
        }
        left = left.saturating_sub(raw.value().len());
        let record = jobs.get(number)?.and_then(|head| Record::unpack(number, head.value()));
        found.extend(record.zip(Body::unpack(raw.value())));
    }
    Ok(Stretch { found, next: None })
}

pub(crate) fn each(
    txn: &ReadTransaction,
    mut look: impl FnMut(u64, Option<Record>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    for row in txn.open_table(JOBS)?.iter()? {
        let (number, raw) = row?;
        look(number.value(), Record::unpack(number.value(), raw.value()))?;
    }
    Ok(())
}

#[cfg(test)]
pub(crate) fn entries(
    txn: &ReadTransaction,
    see: &mut impl FnMut(Entry) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    for row in txn.open_table(IDS)?.iter()? {
        let (locator, number) = row?;
        see(Entry::Id(locator.value(), number.value()))?;
    }
    for row in txn.open_table(BODIES)?.iter()? {
        see(Entry::Body(row?.0.value()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
