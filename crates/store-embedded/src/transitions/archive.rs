//! The archive outbox: attaches an archive, adds ended jobs, reads, removes and drops the first entries, and tells when
//! submits and reserves are refused. The store is in one process, so entries need no lock against a second archiver.

use std::time::Duration;

use bytes::Bytes;
use ringback_core::clock::Timestamp;
use ringback_core::store_types::attempt_log::shown;
use ringback_core::store_types::{
    ArchiveEntries, ArchiveSettings, ArchiveStatus, ArchivedJob, EndedState, MAX_ARCHIVE_BYTES, OutboxPart,
    Shard, StoreError, TakeEntries, payload,
};

use ringback_core::lane::Lane;

use crate::error::Result;
use crate::tables::{ArchiveRow, Record, StoredEnd};
use crate::txn::Txn;
use crate::{EmbeddedStore, TRANSITION_BYTES, answers};

/// After the bound was lowered, a transition drops at most this many entries more than it adds.
const DROPPED: usize = 100;

/// The most lanes of pull jobs whose waiting consumers are woken once reserves are allowed again.
const WOKEN: usize = 100;

/// An entry that was read, and the log of the attempts.
type Found = (Option<StoredEnd>, Option<Vec<u8>>);

impl EmbeddedStore {
    pub async fn attach_archive(
        &self,
        shard: Shard,
        settings: Option<ArchiveSettings>,
    ) -> Result<(), StoreError> {
        let attach = move |txn: &mut Txn<'_>| {
            // A shard that never had an archive keeps its row as it is.
            if settings.is_some() || txn.row.archive.is_some() {
                txn.set_archive(ArchiveRow { settings, ..txn.row.archive.unwrap_or_default() })?;
            }
            Ok(())
        };
        self.call(shard, TRANSITION_BYTES, attach).await
    }

    pub async fn archive_status(&self, shard: Shard) -> Result<ArchiveStatus, StoreError> {
        self.call(shard, 0, status).await
    }

    pub async fn take_ended(
        &self,
        shard: Shard,
        _archiver: &str,
        _lasts: Duration,
        limit: usize,
    ) -> Result<TakeEntries, StoreError> {
        let (row, found, now) = self.call(shard, 0, move |txn| take(txn, limit)).await?;
        let keep = self.options.attempt_retention().time;
        let jobs: Vec<_> = found.into_iter().map(|found| end(found, now, keep)).collect();
        if let Some(at) = jobs.iter().position(Option::is_none) {
            let number = row.first + at as u64;
            tracing::error!(shard = shard.0, number, "an end cannot be archived: it cannot be read");
        }
        let part = OutboxPart { first: row.first, count: jobs.len() as u64, ..OutboxPart::default() };
        Ok(TakeEntries::Taken(ArchiveEntries { part, jobs }))
    }

    /// Removes a part's entries that are not dropped yet, if it is at the front. Returns how many entries are left.
    pub async fn remove_ended(
        &self,
        shard: Shard,
        _archiver: &str,
        part: &OutboxPart,
    ) -> Result<u64, StoreError> {
        let (first, count) = (part.first, part.count);
        let remove = move |txn: &mut Txn<'_>| {
            // Some of the part may have been dropped.
            let before = txn.row.archive.map_or(0, |row| row.first);
            let n = if first <= before { (first + count).saturating_sub(before) } else { 0 };
            Ok(remove_first(txn, n)?.1)
        };
        self.call(shard, TRANSITION_BYTES, remove).await
    }

    /// Removes the first `n` entries and counts them as dropped. Returns how many are left.
    pub async fn drop_ended(&self, shard: Shard, n: u64) -> Result<u64, StoreError> {
        let drop = move |txn: &mut Txn<'_>| {
            let (removed, left) = remove_first(txn, n)?;
            if let Some(row) = &mut txn.row.archive {
                row.dropped += removed;
            }
            Ok(left)
        };
        self.call(shard, TRANSITION_BYTES, drop).await
    }
}

/// Removes the first `n` entries of a shard, or all if there are fewer. Returns how many were removed, and how many are
/// left.
fn remove_first(txn: &mut Txn<'_>, n: u64) -> Result<(u64, u64)> {
    let (Some(mut row), shard) = (txn.row.archive, txn.shard()) else { return Ok((0, 0)) };
    let removed = txn.tables.archive.remove_first(shard, &mut row, n)?;
    txn.set_archive(row)?;
    Ok((removed, row.count))
}

impl Txn<'_> {
    /// Adds a job to the archive outbox, if an archive is attached and wants this kind of end, and drops the oldest
    /// entries if the outbox must. `record` is the job as it ended, but still with its topic; its body is still stored.
    pub(crate) fn archive(&mut self, kind: EndedState, record: &Record) -> Result<()> {
        let Some(mut row) = self.row.archive else { return Ok(()) };
        let Some(settings) = row.wants(kind) else { return Ok(()) };
        let Some(body) = self.tables.records.body(record.number)? else { return Ok(()) };
        let shard = self.shard();
        let entry = StoredEnd::pack(kind, self.now(), record, &body, settings.with_bodies);
        self.tables.archive.add(shard, &mut row, &entry)?;
        let mut most = 1 + DROPPED;
        while row.has_to_drop() && most > 0 {
            row.dropped += self.tables.archive.remove_first(shard, &mut row, 1)?;
            most -= 1;
        }
        self.row.archive = Some(row);
        Ok(())
    }

    /// Sets the row of the archive outbox, and wakes those who reserve if they may again.
    fn set_archive(&mut self, row: ArchiveRow) -> Result<()> {
        let was_too_full = self.is_archive_too_full();
        self.row.archive = Some(row);
        if was_too_full && !row.is_too_full() {
            self.wake_push();
            for lane in self.tables.ready.pull_lanes(self.shard(), 0, WOKEN)? {
                if let Some(lane) = Lane::parse(&lane) {
                    self.wake_lane(lane);
                }
            }
        }
        Ok(())
    }

    /// Fails with `ArchiveBehind` if no jobs may be added because the archive outbox is full.
    pub(crate) fn check_archive(&self) -> Result<()> {
        let is_full = self.row.archive.is_some_and(|row| row.is_full());
        if is_full { Err(StoreError::ArchiveBehind.into()) } else { Ok(()) }
    }

    /// Whether no jobs may be reserved because the archive outbox is too full.
    pub(crate) fn is_archive_too_full(&self) -> bool {
        self.row.archive.is_some_and(|row| row.is_too_full())
    }
}

fn status(txn: &mut Txn<'_>) -> Result<ArchiveStatus> {
    let Some(row) = txn.row.archive else { return Ok(ArchiveStatus::default()) };
    let oldest = txn.tables.archive.oldest(txn.shard(), row.first)?;
    Ok(ArchiveStatus {
        settings: row.settings,
        bound: row.settings.map_or(0, |settings| settings.bound),
        pending: row.count,
        bytes: row.bytes,
        dropped: row.dropped,
        oldest: oldest.map(Timestamp::from_millis),
        stalled: u16::from(row.is_full()),
    })
}

fn take(txn: &mut Txn<'_>, limit: usize) -> Result<(ArchiveRow, Vec<Found>, u64)> {
    let (row, now) = (txn.row.archive.unwrap_or_default(), txn.now());
    if row.count == 0 {
        return Ok((row, Vec::new(), now));
    }
    let (mut found, mut left) = (Vec::new(), MAX_ARCHIVE_BYTES);
    for (size, end) in txn.tables.archive.first(txn.shard(), limit, MAX_ARCHIVE_BYTES)? {
        let log = end.as_ref().map_or(Ok(None), |end| txn.tables.attempts.get(end.record.locator))?;
        left = left.saturating_sub(size + log.as_ref().map_or(0, Vec::len));
        found.push((end, log));
        if left == 0 {
            break;
        }
    }
    Ok((row, found, now))
}

/// Converts an entry for the archiver, with its attempts of the last `keep` ms; `None` if it cannot be read.
fn end((stored, log): Found, now: u64, keep: u64) -> Option<ArchivedJob> {
    let StoredEnd { kind, has_body, at, record, body } = stored?;
    let key = answers::key(&record, &body)?;
    let (origin, tags) = (record.origin.as_ref().into(), record.tags.clone());
    let delivery = payload::unpack(&body.payload, origin, record.timeout(), tags);
    let first_due = Timestamp::from_millis(record.first_due());
    let former_attempts = record.generation.map_or(0, |generation| generation.attempts);
    let attempts = shown(log.map(Bytes::from), Some(record.created), now, keep).unwrap_or_default();
    let has_body = has_body && delivery.is_some();
    let (job, at) = (ArchivedJob::ended(kind, answers::job(record, key)), Timestamp::from_millis(at));
    Some(ArchivedJob { kind, at, job, first_due, delivery, has_body, former_attempts, attempts })
}
