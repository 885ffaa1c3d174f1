//! The archive outbox: ended jobs that wait to be written to an archive database, by shard and number. A row has the
//! record and the body of the job as they were when it ended. Also the totals and limits of a shard's outbox.

use redb::ReadableTable as _;
use ringback_core::store_types::{ArchiveSettings, EndedState, WhenFull, payload};
use serde::{Deserialize, Serialize};

use super::record::{Body, Record};
use super::rows::{Access, Rows, Writing};
use crate::error::Result;

/// The part of a shard's row about its archive outbox: settings and totals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ArchiveRow {
    /// `None` without an archive.
    pub(crate) settings: Option<ArchiveSettings>,
    /// The number of the first entry.
    pub(crate) first: u64,
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    pub(crate) dropped: u64,
}

impl ArchiveRow {
    /// Returns the settings if jobs that end in this way are archived, else `None`.
    pub(crate) fn wants(&self, kind: EndedState) -> Option<ArchiveSettings> {
        self.settings.filter(|settings| settings.states.has(kind))
    }

    /// Whether submits are refused: the entries have reached the bound, and none may be dropped.
    pub(crate) fn is_full(&self) -> bool {
        self.is_beyond(WhenFull::Stall, |bound| self.bytes >= bound)
    }

    /// Whether reserves are refused too: the entries have reached twice the bound, and none may be dropped.
    pub(crate) fn is_too_full(&self) -> bool {
        self.is_beyond(WhenFull::Stall, |bound| self.bytes >= 2 * bound)
    }

    /// Whether the oldest entries are to be dropped: there are some, beyond the bound, and dropping is allowed.
    pub(crate) fn has_to_drop(&self) -> bool {
        self.count > 0 && self.is_beyond(WhenFull::Drop, |bound| self.bytes > bound)
    }

    fn is_beyond(&self, when_full: WhenFull, is_beyond: impl Fn(u64) -> bool) -> bool {
        self.settings.is_some_and(|settings| settings.when_full == when_full && is_beyond(settings.bound))
    }
}

#[derive(Debug)]
pub(crate) struct StoredEnd {
    pub(crate) kind: EndedState,
    /// Whether the body was kept.
    pub(crate) has_body: bool,
    /// When the job ended, in ms.
    pub(crate) at: u64,
    pub(crate) record: Record,
    pub(crate) body: Body,
}

/// Added to the kind of a row with a body.
const HAS_BODY: u8 = 128;

impl StoredEnd {
    /// Packs the kind (1 byte), the time in ms (8), the length of the record (2), the record, and the id and payload,
    /// whose body is left out unless `with_body`.
    pub(crate) fn pack(kind: EndedState, at: u64, record: &Record, body: &Body, with_body: bool) -> Vec<u8> {
        let record = record.pack();
        let length = u16::try_from(record.len()).expect("a record's texts have limits below 64 KiB");
        let payload = if with_body {
            &body.payload[..]
        } else {
            payload::without_body(&body.payload).unwrap_or_default()
        };
        let kind = kind.code() | if with_body { HAS_BODY } else { 0 };
        [&[kind][..], &at.to_be_bytes(), &length.to_be_bytes(), &record, &Body::pack(&body.id, payload)]
            .concat()
    }

    fn unpack(raw: &[u8]) -> Option<Self> {
        let (kind, rest) = raw.split_first()?;
        let (at, rest) = rest.split_first_chunk::<8>()?;
        let (length, rest) = rest.split_first_chunk::<2>()?;
        let (record, body) = rest.split_at_checked(u16::from_be_bytes(*length).into())?;
        // The number of the job is not kept: another job may have it by now.
        let (record, body) = (Record::unpack(0, record)?, Body::unpack(body)?);
        let (has_body, kind) = (kind & HAS_BODY != 0, EndedState::from_code(kind & !HAS_BODY)?);
        Some(Self { kind, has_body, at: u64::from_be_bytes(*at), record, body })
    }
}

pub(crate) struct Archive<A: Access>(pub(crate) Rows<A, (u16, u64), &'static [u8]>);

impl<A: Access> Archive<A> {
    /// Returns the first entries of a shard, each with its size in bytes, its body decompressed; `None` for an entry that
    /// cannot be read. At most `limit`, and no more once they have `bytes` together.
    pub(crate) fn first(
        &self,
        shard: u16,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<(usize, Option<StoredEnd>)>> {
        let (mut found, mut left) = (Vec::new(), bytes);
        for row in self.0.range((shard, 0)..=(shard, u64::MAX))?.take(limit) {
            let (_, raw) = row?;
            let end = StoredEnd::unpack(raw.value());
            let body = end.as_ref().filter(|end| end.has_body).map(|end| &end.body.payload);
            let size = raw.value().len() + body.map_or(0, |body| payload::decompressed_size(body));
            found.push((size, end));
            left = left.saturating_sub(size);
            if left == 0 {
                break;
            }
        }
        Ok(found)
    }

    /// Returns when the job of the entry with the number `first` ended, in ms; `None` if there is no such entry.
    pub(crate) fn oldest(&self, shard: u16, first: u64) -> Result<Option<u64>> {
        let at =
            self.0.read((shard, first), |raw| Some(u64::from_be_bytes(*raw.get(1..)?.first_chunk()?)))?;
        Ok(at.flatten())
    }
}

impl Archive<Writing<'_>> {
    /// Adds an entry behind the others, and to the totals in `row`.
    pub(crate) fn add(&mut self, shard: u16, row: &mut ArchiveRow, entry: &[u8]) -> Result<()> {
        self.0.insert((shard, row.first + row.count), entry)?;
        row.count += 1;
        row.bytes += entry.len() as u64;
        Ok(())
    }

    /// Removes the first entries, at most `n`, updates the totals in `row`, and returns how many were removed.
    pub(crate) fn remove_first(&mut self, shard: u16, row: &mut ArchiveRow, n: u64) -> Result<u64> {
        let n = n.min(row.count);
        for number in row.first..row.first + n {
            let length = self.0.remove((shard, number))?.map_or(0, |raw| raw.value().len());
            row.bytes = row.bytes.saturating_sub(length as u64);
        }
        row.first += n;
        row.count -= n;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use ringback_core::store_types::EndedStates;

    use super::*;

    #[test]
    fn an_end_is_read_as_it_was_packed_and_one_that_is_cut_off_is_unreadable() {
        let body = Body { id: "an-id".to_owned(), payload: vec![0, 2, 1, 1, b'b'].into() };
        let record = Record { topic: "t".into(), attempts: 3, ..Record::default() };
        for with_body in [false, true] {
            let raw = StoredEnd::pack(EndedState::Cancelled, 7, &record, &body, with_body);
            let back = StoredEnd::unpack(&raw).unwrap();
            assert_eq!((back.kind, back.at, back.has_body), (EndedState::Cancelled, 7, with_body));
            assert_eq!((back.record.attempts, back.body.id.as_str()), (3, "an-id"));
            assert_eq!(back.body.payload.len(), if with_body { 5 } else { 4 });
            assert!((0..raw.len() - 6).all(|end| StoredEnd::unpack(&raw[..end]).is_none()));
        }
    }

    #[test]
    fn an_outbox_is_full_at_its_bound_and_too_full_at_twice_of_it_unless_it_drops() {
        let settings = ArchiveSettings {
            states: EndedStates::all(),
            with_bodies: true,
            bound: 10,
            when_full: WhenFull::Stall,
        };
        let of = |when_full, bytes| {
            let settings = Some(ArchiveSettings { when_full, ..settings });
            let row = ArchiveRow { settings, bytes, count: 1, ..ArchiveRow::default() };
            [row.is_full(), row.is_too_full(), row.has_to_drop()]
        };
        assert_eq!(of(WhenFull::Stall, 9), [false, false, false]);
        assert_eq!(of(WhenFull::Stall, 10), [true, false, false]);
        assert_eq!(of(WhenFull::Stall, 20), [true, true, false]);
        assert_eq!(of(WhenFull::Drop, 10), [false, false, false]);
        assert_eq!(of(WhenFull::Drop, 20), [false, false, true]);
    }
}
