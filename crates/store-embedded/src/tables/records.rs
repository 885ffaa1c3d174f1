//! The tables of jobs: the record of each, which every transition rewrites; its body, which only submits write; and the
//! index from its locator to its number. Numbers grow, so that new jobs are stored side by side. The record of an ended
//! job stays as its tombstone, without a body.

use redb::ReadableTable as _;

use super::definitions::{BODIES, IDS, JOBS};
use super::record::{Body, Record};
use super::rows::{Access, Rows, Writing};
use crate::error::Result;

/// A record and its body.
pub(crate) type StoredJob = (Record, Body);

pub(crate) struct Records<A: Access> {
    ids: Rows<A, [u8; 12], u64>,
    jobs: Rows<A, u64, &'static [u8]>,
    bodies: Rows<A, u64, &'static [u8]>,
    /// The number of the next new job, once the writer has looked it up.
    next: Option<u64>,
}

impl<A: Access> Records<A> {
    pub(crate) fn open(access: &A) -> Result<Self> {
        Ok(Self {
            ids: access.open(IDS)?,
            jobs: access.open(JOBS)?,
            bodies: access.open(BODIES)?,
            next: None,
        })
    }

    /// Returns a job or tombstone by its locator; `None` if there is none or it cannot be read.
    pub(crate) fn find(&self, locator: [u8; 12]) -> Result<Option<Record>> {
        let Some(number) = self.number(locator)? else { return Ok(None) };
        self.get(number)
    }

    /// Returns a job or tombstone by its number. If its record cannot be read, logs that and returns `None`, so that
    /// other jobs are not blocked.
    pub(crate) fn get(&self, number: u64) -> Result<Option<Record>> {
        let Some(record) = self.jobs.read(number, |raw| Record::unpack(number, raw))? else {
            return Ok(None);
        };
        if record.is_none() {
            tracing::error!(job.number = number, "a record cannot be read");
        }
        Ok(record)
    }

    pub(crate) fn number(&self, locator: [u8; 12]) -> Result<Option<u64>> {
        self.ids.read(locator, |number| number)
    }

    /// Returns the body of a job; `None` if the job has ended or its body cannot be read.
    pub(crate) fn body(&self, number: u64) -> Result<Option<Body>> {
        Ok(self.bodies.read(number, Body::unpack)?.flatten())
    }

    pub(crate) fn has_body(&self, number: u64) -> Result<bool> {
        self.bodies.has(number)
    }

    /// Returns the id of a job; `None` if the job has ended or its body cannot be read.
    pub(crate) fn id(&self, number: u64) -> Result<Option<String>> {
        Ok(self.bodies.read(number, |raw| Some(Body::split(raw)?.0.to_owned()))?.flatten())
    }

    /// Returns a job together with its body; `None` if the job has ended or its body cannot be read.
    pub(crate) fn with_body(&self, record: Record) -> Result<Option<StoredJob>> {
        Ok(self.body(record.number)?.map(|body| (record, body)))
    }

    /// Returns how many locators and bodies there are together.
    pub(crate) fn index_entries(&self) -> Result<u64> {
        Ok(self.ids.len()? + self.bodies.len()?)
    }

    /// Calls `visit` with the number and the record of every job and tombstone; `None` for a record that cannot be read.
    pub(crate) fn each(&self, mut visit: impl FnMut(u64, Option<Record>) -> Result<()>) -> Result<()> {
        self.jobs.each(|number, raw| visit(number, Record::unpack(number, raw)))
    }

    /// Reads jobs that have not ended, from a number on: at most `limit`, and no more once their bodies have `bytes`.
    /// Leaves out unreadable ones. Also returns the number to go on from; `None` if all were read.
    pub(crate) fn page(
        &self,
        from: u64,
        limit: usize,
        bytes: usize,
    ) -> Result<(Vec<StoredJob>, Option<u64>)> {
        let (mut left, mut found) = (bytes, Vec::new());
        // Only jobs that have not ended have a body.
        for (read, row) in self.bodies.range(from..)?.enumerate() {
            let (number, raw) = row?;
            let number = number.value();
            if read == limit || left == 0 {
                return Ok((found, Some(number)));
            }
            let body = Body::unpack(raw.value());
            left = left.saturating_sub(body.as_ref().map_or(0, Body::weight));
            found.extend(self.get(number)?.zip(body));
        }
        Ok((found, None))
    }
}

impl Records<Writing<'_>> {
    /// Gives a new job its number, one above the last, and writes its locator and body; the caller must `put` the
    /// record. The number of a last job that was removed can be used again.
    pub(crate) fn add(&mut self, record: &mut Record, body: &[u8]) -> Result<()> {
        record.number = match self.next {
            Some(next) => next,
            None => self.jobs.last()?.map_or(1, |(last, _)| last.value() + 1),
        };
        self.next = Some(record.number + 1);
        self.ids.insert(record.locator, record.number)?;
        self.bodies.insert(record.number, body)
    }

    /// Restores the locator of a job if it is missing. Returns whether it was missing.
    pub(crate) fn relink(&mut self, record: &Record) -> Result<bool> {
        let is_missing = self.number(record.locator)?.is_none();
        if is_missing {
            self.ids.insert(record.locator, record.number)?;
        }
        Ok(is_missing)
    }

    pub(crate) fn put(&mut self, record: &Record) -> Result<()> {
        self.jobs.insert(record.number, record.pack().as_slice())
    }

    /// Writes the body of a job, unless the stored one is the same.
    pub(crate) fn replace_body(&mut self, number: u64, body: &[u8]) -> Result<()> {
        if self.bodies.read(number, |before| before == body)? == Some(true) {
            return Ok(());
        }
        self.bodies.insert(number, body)
    }

    pub(crate) fn remove_body(&mut self, number: u64) -> Result<()> {
        self.bodies.remove(number).map(drop)
    }

    /// Removes the record, body and locator of a job or tombstone.
    pub(crate) fn remove(&mut self, record: &Record) -> Result<()> {
        self.remove_body(record.number)?;
        self.jobs.remove(record.number)?;
        self.ids.remove(record.locator).map(drop)
    }
}
