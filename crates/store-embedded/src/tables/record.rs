//! The stored form of a job: its record, with state and counters, and its body, with id and payload. The record of an
//! ended job is its tombstone.

use std::time::Duration;

use ringback_core::clock::millis;
use ringback_core::job::Tags;
use ringback_core::lane::Lane;
use ringback_core::limits::{MAX_ERROR, truncated};
use ringback_core::outcome::LastAttempt;
use ringback_core::state::State;
use ringback_core::store_types::{LeaseId, payload};
use serde::{Deserialize, Serialize};

use super::rows::pack;

/// The length of a stored token.
const TOKEN: usize = 8;

/// Where a job goes among those of its key. Numbers of arrival begin with 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Place {
    /// When it is due, in ms.
    pub(crate) due: u64,
    /// Grows in the order in which jobs arrive.
    pub(crate) arrival: u64,
}

/// The part of a job that transitions change, with the data that they check. Packed with postcard. Times are in ms.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The key of the row.
    #[serde(skip)]
    pub(crate) number: u64,
    pub(crate) shard: u16,
    pub(crate) locator: [u8; 12],
    pub(crate) content: [u8; 8],
    pub(crate) created: u64,
    /// When the job was imported, if another store accepted it before.
    pub(crate) imported: Option<u64>,
    pub(crate) due: u64,
    /// Empty once the job has ended.
    pub(crate) topic: Box<str>,
    /// The origin of the callback URL. Empty for a pull job, and once the job has ended.
    pub(crate) origin: Box<str>,
    /// The timeout of an attempt; 0 for the default.
    pub(crate) timeout: u64,
    pub(crate) attempts: u32,
    pub(crate) failures: u32,
    /// How many leases in a row have expired without an outcome.
    pub(crate) lost: u32,
    /// The number of the last lease that was settled; 0 for none.
    pub(crate) settled: u64,
    pub(crate) last: Option<Last>,
    pub(crate) stage: Stage,
    /// The token of the last call or bulk operation that moved this job.
    pub(crate) token: Option<[u8; TOKEN]>,
    /// The token of the last submit, if that had one. A tombstone keeps this token.
    pub(crate) submitted: Option<[u8; TOKEN]>,
    /// The beginning of this generation, unless it is the first one of its key.
    pub(crate) generation: Option<Generation>,
    /// Whether a push lease expired without an outcome, in this generation.
    pub(crate) lease_lost: bool,
    /// The due time with which the job was submitted, if it has another one now.
    pub(crate) first_due: Option<u64>,
    /// The tags; none once the job has ended.
    pub(crate) tags: Tags,
    pub(crate) arrival: Arrival,
}

/// How a job arrived, which an ordered topic needs to know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Arrival {
    /// In a topic that was not ordered.
    #[default]
    Unnumbered,
    /// A schedule has made the job, which shares its key with no other.
    Fired,
    /// In an ordered topic: with this number, which grows from job to job.
    Numbered(u64),
}

/// The beginning of a generation that is not the first of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Generation {
    /// The last lease of the shard before the generation. Leases up to this one belong to former generations.
    pub(crate) lease: u64,
    /// How many attempts the former generations had.
    pub(crate) attempts: u32,
}

/// The last failed attempt. Times are in ms.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Last {
    pub(crate) at: u64,
    pub(crate) status: Option<u16>,
    pub(crate) error: Option<Box<str>>,
    pub(crate) duration: u64,
}

impl From<&LastAttempt> for Last {
    fn from(last: &LastAttempt) -> Self {
        let error = last.error.as_deref().map(|error| truncated(error, MAX_ERROR));
        Self {
            at: last.at.as_millis(),
            status: last.status,
            error: error.filter(|error| !error.is_empty()).map(Into::into),
            duration: millis(last.duration),
        }
    }
}

/// The state of a job, with the data that locates its entry in the index of that state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Stage {
    /// The index is ordered by the due time.
    #[default]
    Delayed,
    Ready {
        position: i64,
    },
    /// Ready, behind another job of its key.
    Waiting(Place),
    Reserved {
        lease: u64,
        bits: [u8; 8],
        deadline: u64,
        /// A cancel was requested; the settle cancels the job.
        cancel: bool,
        /// How long after the deadline the lease is checked again, for an expired lease that waits to be settled.
        postponed: u64,
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
        /// A delivery was begun and never settled.
        maybe_in_flight: bool,
    },
}

impl Record {
    pub(crate) const fn state(&self) -> State {
        match self.stage {
            Stage::Delayed => State::Delayed,
            Stage::Ready { .. } | Stage::Waiting(_) => State::Ready,
            Stage::Reserved { .. } => State::Reserved,
            Stage::Dead { .. } => State::Dead,
            Stage::Done { .. } => State::Done,
            Stage::Cancelled { .. } => State::Cancelled,
        }
    }

    /// Whether an attempt was begun and never settled, so that it may still be in flight.
    pub(crate) const fn maybe_in_flight(&self) -> bool {
        self.lost > 0 || self.lease_lost
    }

    /// Returns when a done or cancelled job ended; `None` in any other state, dead included.
    pub(crate) const fn ended(&self) -> Option<u64> {
        match self.stage {
            Stage::Done { at } | Stage::Cancelled { at, .. } => Some(at),
            Stage::Delayed
            | Stage::Ready { .. }
            | Stage::Waiting(_)
            | Stage::Reserved { .. }
            | Stage::Dead { .. } => None,
        }
    }

    /// Returns why the job is dead; `None` if it is not.
    pub(crate) fn reason(&self) -> Option<&str> {
        if let Stage::Dead { reason, .. } = &self.stage { Some(reason) } else { None }
    }

    /// Returns the current lease; `None` unless the job is reserved.
    pub(crate) fn lease(&self) -> Option<LeaseId> {
        let Stage::Reserved { lease: number, bits, .. } = self.stage else { return None };
        Some(LeaseId { number, bits })
    }

    /// Returns the timeout of an attempt; `None` if the job has none of its own.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        (self.timeout > 0).then(|| Duration::from_millis(self.timeout))
    }

    /// Returns the due time with which the job was submitted.
    pub(crate) fn first_due(&self) -> u64 {
        self.first_due.unwrap_or(self.due)
    }

    /// Changes the due time. The first change keeps the old one as the first due time.
    pub(crate) fn set_due(&mut self, due: u64) {
        if due != self.due {
            self.first_due.get_or_insert(self.due);
        }
        self.due = due;
    }

    /// Returns when this store accepted the job.
    pub(crate) fn arrived(&self) -> u64 {
        self.imported.unwrap_or(self.created)
    }

    /// Returns where the job goes among those of its key. Jobs that came before their topic was ordered have smaller
    /// numbers than those that came later.
    pub(crate) fn place(&self) -> Place {
        let arrival = if let Arrival::Numbered(arrival) = self.arrival { arrival } else { self.number };
        Place { due: self.due, arrival }
    }

    /// Returns the lane that the job is reserved from.
    pub(crate) fn lane(&self) -> Lane<'_> {
        Lane { topic: &self.topic, origin: &self.origin }
    }

    /// Whether an attempt was made in the present generation.
    pub(crate) fn was_tried(&self) -> bool {
        self.attempts > self.generation.map_or(0, |generation| generation.attempts)
    }

    /// Whether a lease with this number belongs to a former generation, or to an earlier job of the same key.
    pub(crate) fn is_former(&self, lease: u64) -> bool {
        match self.generation {
            Some(generation) => lease <= generation.lease,
            None => lease < self.arrived().saturating_mul(1000),
        }
    }

    pub(crate) fn pack(&self) -> Vec<u8> {
        pack(self)
    }

    pub(crate) fn unpack(number: u64, raw: &[u8]) -> Option<Self> {
        let (record, rest) = postcard::take_from_bytes::<Self>(raw).ok()?;
        rest.is_empty().then_some(Self { number, ..record })
    }
}

/// The part of a job that only a submit in its place changes: its id and its payload.
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

    /// Returns how many bytes reading the job takes, its body decompressed.
    pub(crate) fn weight(&self) -> usize {
        payload::weight(&self.payload)
    }

    /// Splits a packed body into id and payload; `None` if it cannot be read.
    pub(crate) fn split(raw: &[u8]) -> Option<(&str, &[u8])> {
        let (length, rest) = raw.split_first()?;
        let (id, payload) = rest.split_at_checked(usize::from(*length))?;
        Some((std::str::from_utf8(id).ok()?, payload))
    }
}

#[cfg(test)]
mod tests {
    use ringback_core::job::{self, Callback, Delivery, MAX_BODY};

    use super::*;

    #[test]
    fn rows_that_are_cut_off_cannot_be_read() {
        let body = Body::pack("an-id", b"payload");
        assert_eq!(Body::unpack(&body).unwrap().id, "an-id");
        assert!(Body::unpack(&body[..4]).is_none() && Body::unpack(&[]).is_none());
        assert!(Record::unpack(1, &[0; 20]).is_none());
    }

    #[test]
    fn the_first_due_time_stays_while_the_due_time_changes() {
        let mut record = Record { due: 7, ..Record::default() };
        record.set_due(7);
        assert_eq!((record.first_due, record.first_due()), (None, 7), "nothing is stored");
        for due in [9, 5, 7] {
            record.set_due(due);
            assert_eq!((record.due, record.first_due()), (due, 7));
        }
    }

    #[test]
    fn a_life_has_no_attempts_and_no_leases_of_a_former_one() {
        let first = Record { created: 7, attempts: 1, ..Record::default() };
        assert!(first.was_tried() && first.is_former(6_999) && !first.is_former(7_000));
        let later = Record { generation: Some(Generation { lease: 9_000, attempts: 1 }), ..first };
        assert!(!later.was_tried() && later.is_former(9_000) && !later.is_former(9_001));
    }

    #[test]
    fn random_rows_are_unreadable_or_are_packed_again_as_they_were_read() {
        let reserved =
            Stage::Reserved { lease: 5, bits: [1; 8], deadline: 1_000, cancel: true, postponed: 7 };
        let dead = Stage::Dead { since: 9, reason: "exhausted".into() };
        let last = Last { at: 5, status: Some(503), error: Some("timeout".into()), duration: 7 };
        let (generation, token) = (Some(Generation { lease: 4, attempts: 2 }), Some([3; TOKEN]));
        let tags = Tags::from_stored("a b:1").unwrap();
        let samples = [
            Record { stage: reserved, token, generation, first_due: Some(8), tags, ..Record::default() },
            Record {
                stage: dead,
                last: Some(last),
                topic: "t".into(),
                origin: "http://h".into(),
                ..Record::default()
            },
            Record {
                stage: Stage::Ready { position: -1 },
                submitted: token,
                lease_lost: true,
                arrival: Arrival::Fired,
                ..Record::default()
            },
            Record {
                stage: Stage::Waiting(Place { due: 5, arrival: 300 }),
                arrival: Arrival::Numbered(300),
                ..Record::default()
            },
        ];
        let body = job::Body { bytes: vec![b'x'; 600].into(), content_type: None };
        let payload = payload::pack(&Delivery::new(Callback::parse("http://h/").unwrap(), body));
        let samples: Vec<_> =
            samples.iter().map(Record::pack).chain([Body::pack("an-id", &payload)]).collect();
        ringback_fuzz::run(&samples, |raw| {
            if let Some(record) = Record::unpack(1, raw) {
                let packed = record.pack();
                let again = Record::unpack(1, &packed).expect("it was packed");
                assert_eq!(format!("{again:?}"), format!("{record:?}"));
            }
            if let Some(body) = Body::unpack(raw) {
                assert_eq!(Body::pack(&body.id, &body.payload), raw);
                let delivery = payload::unpack(&body.payload, "http://h".to_owned(), None, Tags::default());
                if let Some(delivery) = delivery {
                    assert!(delivery.body.bytes.len() <= raw.len().max(MAX_BODY));
                }
            }
        });
    }
}
