//! The log of a job's attempts: adds entries, removes old logs, and reads a log. Jobs themselves do not change.

use std::time::Duration;

use ringback_core::clock::Timestamp;
use ringback_core::job::JobKey;
use ringback_core::store_types::attempt_log::{AttemptLog, pack, shown};
use ringback_core::store_types::{
    Attempt, AttemptLogEntry, AttemptRetention, LogResult, Proof, Shard, StoreError,
};

use crate::EmbeddedStore;
use crate::error::Result;
use crate::tables::{Stage, cost};
use crate::txn::Txn;

/// About how many bytes one entry writes.
const BYTES: usize = 2048;
/// How many logs a call checks for age, in addition to two for each entry.
const CHECKED: usize = 16;

impl EmbeddedStore {
    pub async fn log_attempts(
        &self,
        shard: Shard,
        notes: &[AttemptLogEntry],
    ) -> Result<LogResult, StoreError> {
        let (notes, keep) = (notes.to_vec(), self.options.attempt_retention());
        self.call(shard, notes.len() * BYTES, move |txn| note(txn, &notes, keep)).await?;
        Ok(LogResult::Kept)
    }

    pub async fn attempts(&self, shard: Shard, key: &JobKey) -> Result<Option<Vec<Attempt>>, StoreError> {
        let (locator, keep) = (key.locator().0, self.keep_tombstones());
        let read = move |txn: &mut Txn<'_>| {
            let created = txn.find(locator, keep)?.map(|job| job.created);
            Ok((txn.tables.attempts.get(locator)?, created, txn.now()))
        };
        let (log, created, now) = self.call(shard, 0, read).await?;
        Ok(shown(log.map(Into::into), created, now, self.options.attempt_retention().time))
    }
}

fn note(txn: &mut Txn<'_>, notes: &[AttemptLogEntry], keep: AttemptRetention) -> Result<()> {
    let (shard, now) = (txn.shard(), txn.now());
    for note in notes {
        let locator = note.locator.0;
        let Some((created, attempt)) = complete(txn, note)? else { continue };
        let kept = txn.tables.attempts.get(locator)?;
        if !is_current(txn, locator, created, kept.as_deref())? {
            continue;
        }
        let mut log = AttemptLog::of(created, kept.clone());
        // As on Redis, where one place holds a third of the space at most.
        log.add(&pack(&attempt), keep.bytes / 3, cost);
        if !log.is_empty() && kept.as_ref() != Some(&log.0) {
            txn.tables.attempts.put(shard, now, locator, &log.0)?;
        }
    }
    let before = now.saturating_sub(keep.time);
    txn.tables.attempts.trim(shard, before, keep.bytes, CHECKED + 2 * notes.len())
}

/// Whether an entry of the job that was created at `created` belongs into the log that is kept for its key. An entry may
/// come late, when a newer job has the key: the log belongs to the job that has not ended, or else to the latest job.
fn is_current(txn: &Txn<'_>, locator: [u8; 12], created: u64, kept: Option<&[u8]>) -> Result<bool> {
    let Some(of) = kept.and_then(AttemptLog::created).filter(|of| *of != created) else { return Ok(true) };
    let job = txn.tables.records.find(locator)?.filter(|job| !job.state().is_terminal());
    Ok(job.map_or(created > of, |job| job.created == created))
}

/// Returns when the job was created, in ms, and the attempt with its number and times. `None` if the entry is about a
/// lease that is not the current one, or is said to have expired and has not.
fn complete(txn: &Txn<'_>, note: &AttemptLogEntry) -> Result<Option<(u64, Attempt)>> {
    let (lease, only_expired) = match note.proof {
        Proof::Created(at) => return Ok(Some((at.as_millis(), note.attempt.clone()))),
        Proof::Held(lease) => (lease, false),
        Proof::Expired(lease) => (lease, true),
    };
    let Some(job) = txn.tables.records.find(note.locator.0)? else { return Ok(None) };
    let Stage::Reserved { deadline, .. } = job.stage else { return Ok(None) };
    if job.lease() != Some(lease) || (only_expired && deadline > txn.now()) {
        return Ok(None);
    }
    // The number of a lease is the time at which it began, in µs.
    let at = (lease.number / 1000).min(txn.now());
    let duration = Duration::from_millis(txn.now() - at);
    let attempt =
        Attempt { number: job.attempts, at: Timestamp::from_millis(at), duration, ..note.attempt.clone() };
    Ok(Some((job.created, attempt)))
}
