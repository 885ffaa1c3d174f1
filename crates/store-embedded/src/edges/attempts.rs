//! note: attempts go into the logs of their jobs. No edge: no job is touched.

use std::time::Duration;

use ringback_core::clock::Timestamp;
use ringback_core::contract::attempt_log::{AttemptLog, pack};
use ringback_core::contract::{Attempt, AttemptRetention, Note, Proof, Receipt, StoreError};

use crate::tables::{Stage, cost};
use crate::txn::{Keep, Txn};

/// So many logs are looked at for old ones, and two more for each note.
const TRIMMED: usize = 16;

pub(crate) fn note(txn: &mut Txn<'_>, notes: &[Note], keep: AttemptRetention) -> Result<(), StoreError> {
    let (shard, now) = (txn.shard(), txn.now());
    for note in notes {
        let locator = note.locator.0;
        let Some((created, attempt)) = known(txn, note)? else { continue };
        let kept = txn.tables.attempts.get(locator)?;
        if !counts(txn, locator, created, kept.as_deref())? {
            continue;
        }
        let mut log = AttemptLog::of(created, kept.clone());
        // As on Redis, where a third of the room is the most that one place holds.
        log.add(&pack(&attempt), keep.bytes / 3, cost);
        if !log.is_empty() && kept.as_ref() != Some(&log.0) {
            txn.tables.attempts.put(shard, now, locator, &log.0)?;
        }
    }
    let before = now.saturating_sub(keep.time);
    txn.tables.attempts.trim(shard, before, keep.bytes, TRIMMED + 2 * notes.len())
}

/// Whether a note of a job counts where there is a log of another one of its name. The log is that of
/// the job that has not ended, where there is one, else that of the later one: a note may be late.
fn counts(txn: &Txn<'_>, locator: [u8; 12], created: u64, kept: Option<&[u8]>) -> Result<bool, StoreError> {
    let Some(of) = kept.and_then(AttemptLog::created).filter(|of| *of != created) else { return Ok(true) };
    let job = txn.tables.records.find(locator)?.filter(|job| !job.state().is_terminal());
    Ok(job.map_or(created > of, |job| job.created == created))
}

/// When the job was created, and the attempt; none where its receipt is not current.
fn known(txn: &Txn<'_>, note: &Note) -> Result<Option<(u64, Attempt)>, StoreError> {
    let (Receipt { number, bits: given }, only_over) = match note.proof {
        Proof::Created(at) => return Ok(Some((at.as_millis(), note.attempt.clone()))),
        Proof::Held(receipt) => (receipt, false),
        Proof::Expired(receipt) => (receipt, true),
    };
    let Some(job) = txn.tables.records.find(note.locator.0)? else { return Ok(None) };
    let Stage::Reserved { lease, bits, deadline, .. } = job.stage else { return Ok(None) };
    if lease != number || bits != given || (only_over && deadline > txn.now()) {
        return Ok(None);
    }
    // A lease's number tells when it began.
    let at = (number / 1000).min(txn.now());
    let duration = Duration::from_millis(txn.now() - at);
    let attempt =
        Attempt { number: job.attempts, at: Timestamp::from_millis(at), duration, ..note.attempt.clone() };
    Ok(Some((job.created, attempt)))
}

/// What is known of a job's attempts.
pub(crate) struct Tried {
    /// When the job was created, if it is known, in ms.
    pub(crate) created: Option<u64>,
    pub(crate) log: Option<Vec<u8>>,
    /// In ms.
    pub(crate) now: u64,
}

pub(crate) fn attempts(txn: &Txn<'_>, locator: [u8; 12], keep: Keep) -> Result<Tried, StoreError> {
    let created = txn.known(locator, keep)?.map(|job| job.created);
    Ok(Tried { created, log: txn.tables.attempts.get(locator)?, now: txn.now() })
}
