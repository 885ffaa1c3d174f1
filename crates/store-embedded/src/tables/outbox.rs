//! Deaths that are still to be told, by when. A row has the record and the name of the job as it
//! was when it died, and what it brought along but for its body.

use redb::{ReadableTable as _, ReadableTableMetadata as _, TableDefinition, WriteTransaction};
use ringback_core::contract::{StoreError, payload};

use super::rows::{Journal, Name, Rows};
use super::{Body, Record};

/// Shard, when it is to be told in ms, the job's number and attempts.
pub(crate) type OutboxKey = (u16, u64, u64, u32);

/// A row; none where it cannot be read.
pub(crate) type OutboxRow = (OutboxKey, Option<Entry>);

const OUTBOX: TableDefinition<'static, OutboxKey, &[u8]> = TableDefinition::new("outbox");

/// A death as it is kept.
#[derive(Debug)]
pub(crate) struct Entry {
    /// In ms.
    pub(crate) died: u64,
    pub(crate) record: Record,
    /// The id, and the payload without its body.
    pub(crate) body: Body,
}

impl Entry {
    /// The time, the length of the record (2 bytes), the record, and the rest.
    fn pack(died: u64, record: &Record, body: &Body) -> Vec<u8> {
        let record = record.pack();
        let length = u16::try_from(record.len()).expect("a record's texts have limits below 64 KiB");
        let told = payload::without_body(&body.payload).unwrap_or_default();
        [&died.to_be_bytes()[..], &length.to_be_bytes(), &record, &Body::pack(&body.id, told)].concat()
    }

    fn unpack(number: u64, raw: &[u8]) -> Option<Self> {
        let (died, rest) = raw.split_first_chunk::<8>()?;
        let (length, rest) = rest.split_first_chunk::<2>()?;
        let (record, body) = rest.split_at_checked(u16::from_be_bytes(*length).into())?;
        let (record, body) = (Record::unpack(number, record)?, Body::unpack(body)?);
        Some(Self { died: u64::from_be_bytes(*died), record, body })
    }
}

pub(crate) struct OutboxTable<'t>(pub(crate) Rows<'t, OutboxKey, &'static [u8]>);

impl<'t> OutboxTable<'t> {
    pub(crate) fn open(txn: &'t WriteTransaction, journal: &'t Journal) -> Result<Self, StoreError> {
        Ok(Self(Rows::open(txn, journal, Name::Outbox, OUTBOX)?))
    }

    /// A job died, and is to be told of at once.
    pub(crate) fn add(&mut self, died: u64, record: &Record, body: &Body) -> Result<(), StoreError> {
        let key = self.free((record.shard, died, record.number, record.attempts))?;
        self.0.insert(key, Entry::pack(died, record, body).as_slice())?;
        Ok(())
    }

    /// A number is given again once its job is purged, so the key may be taken, if hardly ever.
    fn free(&self, mut key: OutboxKey) -> Result<OutboxKey, StoreError> {
        while self.0.get(key)?.is_some() {
            key.1 += 1;
        }
        Ok(key)
    }

    /// When the first is to be told.
    pub(crate) fn first(&self, shard: u16) -> Result<Option<u64>, StoreError> {
        let mut rows = self.0.range((shard, 0, 0, 0)..=(shard, u64::MAX, u64::MAX, u32::MAX))?;
        rows.next().map(|row| Ok(row?.0.value().1)).transpose()
    }

    /// The first that are to be told by a time, of about so many bytes.
    pub(crate) fn until(
        &self,
        shard: u16,
        time: u64,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<OutboxRow>, StoreError> {
        let (mut found, mut left) = (Vec::new(), bytes);
        for row in self.0.range((shard, 0, 0, 0)..=(shard, time, u64::MAX, u32::MAX))?.take(limit) {
            let (key, raw) = row?;
            let key = key.value();
            found.push((key, Entry::unpack(key.2, raw.value())));
            left = left.saturating_sub(raw.value().len());
            if left == 0 {
                break;
            }
        }
        Ok(found)
    }

    pub(crate) fn remove(&mut self, key: OutboxKey) -> Result<(), StoreError> {
        self.0.remove(key)?;
        Ok(())
    }

    /// One that is there is to be told at a time.
    pub(crate) fn put_off(&mut self, key: OutboxKey, at: u64) -> Result<(), StoreError> {
        let (shard, _, number, attempts) = key;
        let Some(raw) = self.0.remove(key)?.map(|raw| raw.value().to_vec()) else { return Ok(()) };
        let key = self.free((shard, at, number, attempts))?;
        self.0.insert(key, raw.as_slice())?;
        Ok(())
    }

    /// How many there are, in all shards: that is known without a look at them.
    pub(crate) fn len(&self) -> Result<u64, StoreError> {
        Ok(self.0.len()?)
    }
}
