//! What a snapshot tells of topics: their names, their lanes with what is counted of them, and the first
//! jobs of these.

use redb::{ReadOnlyTable, ReadTransaction};
use ringback_core::contract::StoreError;

use super::counts::{COUNTS, Jobs, KNOWN, Known, unpack_jobs, unpack_known};
use super::due::{self, LAST};
use super::ready;
use super::records::{JOBS, Record};

/// The tables of a snapshot that topics are in.
pub(crate) struct Told {
    jobs: ReadOnlyTable<u64, &'static [u8]>,
    due: ReadOnlyTable<(u16, &'static str, u64, u64), ()>,
    topics: ReadOnlyTable<(u16, &'static str), u64>,
    ready: ReadOnlyTable<(u16, &'static str, i64), u64>,
    counts: ReadOnlyTable<(u16, &'static str), &'static [u8]>,
    known: ReadOnlyTable<(u16, &'static str), &'static [u8]>,
}

impl Told {
    pub(crate) fn by(txn: &ReadTransaction) -> Result<Self, StoreError> {
        Ok(Self {
            jobs: txn.open_table(JOBS)?,
            due: txn.open_table(due::DUE)?,
            topics: txn.open_table(due::TOPICS)?,
            ready: txn.open_table(ready::READY)?,
            counts: txn.open_table(COUNTS)?,
            known: txn.open_table(KNOWN)?,
        })
    }

    /// Whether a topic ever had a job in a shard, or was paused.
    pub(crate) fn is_known(&self, shard: u16, topic: &str) -> Result<bool, StoreError> {
        Ok(self.topics.get((shard, topic))?.is_some())
    }

    /// Those topics in the order of their names, from one on.
    pub(crate) fn topics(&self, shard: u16, from: &str, limit: usize) -> Result<Vec<String>, StoreError> {
        let rows = self.topics.range((shard, from)..=(shard, LAST))?.take(limit);
        rows.map(|row| Ok(row?.0.value().1.to_owned())).collect()
    }

    pub(crate) fn known(&self, shard: u16, topic: &str) -> Result<Known, StoreError> {
        self.known.get((shard, topic))?.map_or(Ok(Known::default()), |raw| unpack_known(raw.value()))
    }

    /// The lanes of a topic that have jobs.
    pub(crate) fn lanes(
        &self,
        shard: u16,
        topic: &str,
    ) -> Result<impl Iterator<Item = Result<(String, Jobs), StoreError>> + use<>, StoreError> {
        let (first, last) = (format!("{topic} "), format!("{topic} {LAST}"));
        let rows = self.counts.range((shard, &*first)..=(shard, &*last))?;
        Ok(rows.map(|row| {
            let (key, raw) = row?;
            Ok((key.value().1.to_owned(), unpack_jobs(raw.value())?))
        }))
    }

    /// When the first delayed job of a topic is due.
    pub(crate) fn first_delayed(&self, shard: u16, topic: &str) -> Result<Option<u64>, StoreError> {
        due::first_of(&self.due, shard, topic)
    }

    /// When the earliest of the first ready jobs of a lane was due.
    pub(crate) fn first_ready(&self, shard: u16, lane: &str, most: usize) -> Result<Option<u64>, StoreError> {
        let mut first = None;
        for row in self.ready.range((shard, lane, i64::MIN)..=(shard, lane, i64::MAX))?.take(most) {
            let number = row?.1.value();
            let record = self.jobs.get(number)?.and_then(|raw| Record::unpack(number, raw.value()));
            first = [first, record.map(|job| job.due)].into_iter().flatten().min();
        }
        Ok(first)
    }
}
