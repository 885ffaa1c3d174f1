//! The outbox: notices of dead and done jobs that are still to be published, by shard and the time of that. A row has
//! the record and the id of the job as they were when it ended, and its payload without the body.

use redb::ReadableTable as _;
use ringback_core::store_types::{Success, payload};

use super::definitions::OutboxKey;
use super::record::{Body, Record};
use super::rows::{Access, Rows, Writing};
use crate::error::Result;

/// The key of a row, and its notice; `None` for a notice that cannot be read.
pub(crate) type OutboxRow = (OutboxKey, Option<Notice>);

/// A notice as it is stored.
#[derive(Debug)]
pub(crate) struct Notice {
    /// When the job ended, in ms.
    pub(crate) at: u64,
    /// How the receiver answered, if the job is done.
    pub(crate) success: Option<Success>,
    pub(crate) record: Record,
    /// The id, and the payload without its body.
    pub(crate) body: Body,
}

impl Notice {
    /// Packs the time of the end in ms (8 bytes), the success if there was one, the length of the record (2), the
    /// record, and the id and the payload without its body.
    fn pack(at: u64, success: Option<&Success>, record: &Record, body: &Body) -> Vec<u8> {
        let (success, record) = (Success::pack(success), record.pack());
        let length = u16::try_from(record.len()).expect("a record's texts have limits below 64 KiB");
        let payload = payload::without_body(&body.payload).unwrap_or_default();
        [&at.to_be_bytes()[..], &success, &length.to_be_bytes(), &record, &Body::pack(&body.id, payload)]
            .concat()
    }

    fn unpack(number: u64, raw: &[u8]) -> Option<Self> {
        let (at, mut rest) = raw.split_first_chunk::<8>()?;
        let success = Success::take(&mut rest).ok()?;
        let (length, rest) = rest.split_first_chunk::<2>()?;
        let (record, body) = rest.split_at_checked(u16::from_be_bytes(*length).into())?;
        let (record, body) = (Record::unpack(number, record)?, Body::unpack(body)?);
        Some(Self { at: u64::from_be_bytes(*at), success, record, body })
    }
}

pub(crate) struct Outbox<A: Access>(pub(crate) Rows<A, OutboxKey, &'static [u8]>);

impl<A: Access> Outbox<A> {
    /// Returns when the first notice of a shard is to be published, in ms; `None` if there is none.
    pub(crate) fn first(&self, shard: u16) -> Result<Option<u64>> {
        let all = (shard, 0, 0, 0)..=(shard, u64::MAX, u64::MAX, u32::MAX);
        Ok(self.0.list(all, 1, |(_, at, ..), _| at)?.first().copied())
    }

    /// Returns the first notices that are to be published at or before a time, in ms: at most `limit`, and no more once
    /// they have `bytes` together.
    pub(crate) fn until(&self, shard: u16, time: u64, limit: usize, bytes: usize) -> Result<Vec<OutboxRow>> {
        let (mut found, mut left) = (Vec::new(), bytes);
        for row in self.0.range((shard, 0, 0, 0)..=(shard, time, u64::MAX, u32::MAX))?.take(limit) {
            let (key, raw) = row?;
            let key = key.value();
            found.push((key, Notice::unpack(key.2, raw.value())));
            left = left.saturating_sub(raw.value().len());
            if left == 0 {
                break;
            }
        }
        Ok(found)
    }

    /// Returns the keys of all notices that are to be published after a time, in ms.
    pub(crate) fn after(&self, shard: u16, time: u64) -> Result<Vec<OutboxKey>> {
        let later = (shard, time.saturating_add(1), 0, 0)..=(shard, u64::MAX, u64::MAX, u32::MAX);
        self.0.list(later, usize::MAX, |key, _| key)
    }

    /// Returns how many notices all shards have together, without reading them.
    pub(crate) fn len(&self) -> Result<u64> {
        self.0.len()
    }

    /// Returns the key, with its time raised until no notice has it. A number is reused once its job is purged, so a
    /// key may be taken, though rarely.
    fn free_key(&self, mut key: OutboxKey) -> Result<OutboxKey> {
        while self.0.has(key)? {
            key.1 += 1;
        }
        Ok(key)
    }
}

impl Outbox<Writing<'_>> {
    /// Adds the notice of a job that died, or is done with `success`, to be published at once.
    pub(crate) fn add(
        &mut self,
        at: u64,
        success: Option<&Success>,
        record: &Record,
        body: &Body,
    ) -> Result<()> {
        let key = self.free_key((record.shard, at, record.number, record.attempts))?;
        self.0.insert(key, Notice::pack(at, success, record, body).as_slice())
    }

    pub(crate) fn remove(&mut self, key: OutboxKey) -> Result<()> {
        self.0.remove(key).map(drop)
    }

    /// Moves a notice to the time `at`, in ms. Does nothing if it is no longer there.
    pub(crate) fn defer(&mut self, key: OutboxKey, at: u64) -> Result<()> {
        let (shard, _, number, attempts) = key;
        let Some(raw) = self.0.remove(key)?.map(|raw| raw.value().to_vec()) else { return Ok(()) };
        let key = self.free_key((shard, at, number, attempts))?;
        self.0.insert(key, raw.as_slice())
    }
}
