//! submit: nothing → delayed, or ready if already due; or delayed, ready, dead → delayed or ready with other content.
//! import is a submit of jobs with a history; a job that was dead in the other store becomes dead. `replace` decides
//! about keys that are taken.

use ringback_core::job::{ImportJob, JobKey, NewJob};
use ringback_core::store_types::{Limit, Shard, StoreError, SubmitResult, Submitted, TransitionName};

use super::new_record::NewRecord;
use super::replace::{Replacement, judge, next_generation, replace};
use crate::error::Result;
use crate::tables::Record;
use crate::txn::{KeepTombstones, Txn};
use crate::{EmbeddedStore, TRANSITION_BYTES, answers};

impl EmbeddedStore {
    pub async fn submit(&self, shard: Shard, jobs: &[NewJob]) -> Result<Vec<Submitted>, StoreError> {
        let records = jobs.iter().map(|job| NewRecord::pack(shard.0, job)).collect();
        self.submit_records(shard, records, jobs.iter().map(|job| &job.key)).await
    }

    pub async fn import(&self, shard: Shard, jobs: &[ImportJob]) -> Result<Vec<Submitted>, StoreError> {
        let pack = |job: &ImportJob| {
            let record = NewRecord::pack(shard.0, &job.job).by(TransitionName::Import);
            job.history.iter().fold(record, NewRecord::with)
        };
        self.submit_records(shard, jobs.iter().map(pack).collect(), jobs.iter().map(|job| &job.job.key)).await
    }

    /// Submits packed jobs with these keys; returns answer and job for each. Fails while the archive outbox is full.
    async fn submit_records(
        &self,
        shard: Shard,
        jobs: Vec<NewRecord>,
        keys: impl Iterator<Item = &JobKey>,
    ) -> Result<Vec<Submitted>, StoreError> {
        let (bytes, keep) =
            (jobs.iter().map(|job| job.body.len() + TRANSITION_BYTES).sum(), self.keep_tombstones());
        let answers: Vec<_> = self
            .call(shard, bytes, move |txn| {
                txn.check_archive()?;
                txn.promote_ordered(&jobs)?;
                jobs.iter().map(|job| submit(txn, job, keep)).collect()
            })
            .await?;
        let submitted = answers.into_iter().zip(keys);
        Ok(submitted
            .map(|((answer, record), key)| Submitted { answer, job: answers::job(record, key.clone()) })
            .collect())
    }
}

/// Stores a job; if another job has its key, in the place of that one, or not at all. Returns the answer, and the record
/// that has the key afterwards or, if a limit refuses the job, the record that was not stored.
pub(crate) fn submit(
    txn: &mut Txn<'_>,
    job: &NewRecord,
    keep: KeepTombstones,
) -> Result<(SubmitResult, Record)> {
    let (known, answer) = match txn.tables.records.find(job.record.locator)? {
        Some(tombstone) if txn.is_expired(&tombstone, keep) => {
            txn.evict(&tombstone)?;
            (None, SubmitResult::Created)
        }
        Some(known) => match judge(txn, job, &known) {
            Replacement::Keep(answer) => return Ok((answer, known)),
            Replacement::Replace(answer) => (Some(known), answer),
        },
        None => (None, SubmitResult::Created),
    };
    if txn.has_too_many_keys(job, known.as_ref())? {
        return Ok((SubmitResult::Full(Limit::Keys), job.record.clone()));
    }
    if let Some(limit) = txn.tables.counts.refuse(txn.shard(), &job.record.lane().name(), job.limits)? {
        return Ok((SubmitResult::Full(limit), job.record.clone()));
    }
    match known {
        Some(known) if known.ended().is_none() => Ok((answer, replace(txn, job, &known)?)),
        former => Ok((answer, add(txn, job, former.as_ref())?)),
    }
}

/// Adds a job whose key is free, or has the tombstone `former`, which is removed and whose next generation begins.
fn add(txn: &mut Txn<'_>, job: &NewRecord, former: Option<&Record>) -> Result<Record> {
    let (now, shard) = (txn.now(), txn.shard());
    txn.tables.due.register(shard, &job.record.topic)?;
    let mut record = job.record.clone();
    match former {
        Some(tombstone) => {
            record = next_generation(txn, tombstone, record);
            txn.evict(tombstone)?;
        }
        None => {
            record.created = job.created.map_or(now, |at| at.as_millis().min(now));
            record.imported = job.created.map(|_| now);
        }
    }
    let (due, to) = job.enters(txn, record.created);
    record.due = due;
    txn.because(job.transition, None);
    txn.add(record, &job.body, to)
}
