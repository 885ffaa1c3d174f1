//! submit: nothing → delayed, or ready if already due. import is a submit of jobs with a history; a
//! job that is dead already becomes dead.

use ringback_core::clock::{Timestamp, millis_up};
use ringback_core::contract::{Shard, StoreError, SubmitResult, Submitted, payload};
use ringback_core::job::{Due, History, ImportJob, JobKey, NewJob};
use ringback_core::limits::MAX_IMPORTED_COUNT;

use crate::error::Result;
use crate::tables::{Body, Last, QueueEnd, Record};
use crate::txn::transitions::To;
use crate::txn::{KeepTombstones, Txn};
use crate::{EDGE_BYTES, EmbeddedStore, answers};

impl EmbeddedStore {
    pub async fn submit(&self, shard: Shard, jobs: &[NewJob]) -> Result<Vec<Submitted>, StoreError> {
        let records = jobs.iter().map(|job| NewRecord::pack(shard.0, job)).collect();
        self.submit_records(shard, records, jobs.iter().map(|job| &job.key)).await
    }

    pub async fn import(&self, shard: Shard, jobs: &[ImportJob]) -> Result<Vec<Submitted>, StoreError> {
        let pack = |job: &ImportJob| {
            let record = NewRecord::pack(shard.0, &job.job);
            job.history.iter().fold(record, NewRecord::with)
        };
        self.submit_records(shard, jobs.iter().map(pack).collect(), jobs.iter().map(|job| &job.job.key)).await
    }

    /// `keys` are the names of the jobs, in order.
    async fn submit_records(
        &self,
        shard: Shard,
        jobs: Vec<NewRecord>,
        keys: impl Iterator<Item = &JobKey>,
    ) -> Result<Vec<Submitted>, StoreError> {
        let (bytes, keep) =
            (jobs.iter().map(|job| job.body.len() + EDGE_BYTES).sum(), self.keep_tombstones());
        let answers: Vec<_> = self
            .call(shard, bytes, move |txn| jobs.iter().map(|job| submit(txn, job, keep)).collect())
            .await?;
        let submitted = answers.into_iter().zip(keys);
        Ok(submitted
            .map(|((answer, record), key)| Submitted { answer, job: answers::job(record, key.clone()) })
            .collect())
    }
}

/// A submitted job, packed for the tables.
pub(crate) struct NewRecord {
    due: Due,
    /// When another store accepted it.
    created: Option<Timestamp>,
    /// Why it is dead, if it is.
    dead: Option<Box<str>>,
    /// The record without its times and its state.
    record: Record,
    body: Vec<u8>,
}

impl NewRecord {
    pub(crate) fn pack(shard: u16, job: &NewJob) -> Self {
        let record = Record {
            shard,
            locator: job.key.locator().0,
            content: job.content.0,
            topic: job.key.topic.as_str().into(),
            origin: job.delivery.callback.origin().into(),
            timeout: job.delivery.timeout.map_or(0, millis_up),
            ..Record::default()
        };
        let body = Body::pack(job.key.id.as_str(), &payload::pack(&job.delivery));
        Self { due: job.due, created: None, dead: None, record, body }
    }

    /// The same job with its history.
    fn with(mut self, history: &History) -> Self {
        self.created = history.created;
        self.dead = history.dead.as_deref().map(Into::into);
        self.record.attempts = history.attempts.min(MAX_IMPORTED_COUNT);
        self.record.failures = history.failures.min(MAX_IMPORTED_COUNT);
        self.record.last = history.last.as_ref().map(Last::from);
        self
    }
}

/// A due time in ms, which may be in the past.
pub(crate) fn due_time(txn: &Txn<'_>, due: Due) -> u64 {
    match due {
        Due::In(delay) if delay.is_zero() => txn.now(),
        Due::In(delay) => txn.now_up().saturating_add(millis_up(delay)),
        Due::At(at) => at.as_millis(),
    }
}

/// Stores a job unless its name is taken. Returns the answer, with the record that has the name then.
pub(crate) fn submit(
    txn: &mut Txn<'_>,
    job: &NewRecord,
    keep: KeepTombstones,
) -> Result<(SubmitResult, Record)> {
    match txn.tables.records.find(job.record.locator)? {
        Some(tombstone) if txn.is_expired(&tombstone, keep) => txn.evict(&tombstone)?,
        Some(known) => {
            let is_same = known.content == job.record.content;
            return Ok((if is_same { SubmitResult::Repeated } else { SubmitResult::Conflict }, known));
        }
        None => {}
    }
    let (now, shard) = (txn.now(), txn.shard());
    if let Some(limit) = txn.tables.counts.refuse(shard, &job.record.lane().name())? {
        return Ok((SubmitResult::Full(limit), job.record.clone()));
    }
    txn.tables.due.register(shard, &job.record.topic)?;
    let created = job.created.map_or(now, |at| at.as_millis().min(now));
    let imported = job.created.map(|_| now);
    let due = due_time(txn, job.due);
    // A dead job keeps its due time.
    let due = if job.dead.is_some() { due } else { due.max(now) };
    let to = match &job.dead {
        Some(reason) => To::Dead(reason.clone()),
        None if due <= now => To::Ready(QueueEnd::Back),
        None => To::Delayed(due),
    };
    let record = Record { created, imported, due, ..job.record.clone() };
    Ok((SubmitResult::Created, txn.add(record, &job.body, to)?))
}
