//! submit: nothing → delayed, or ready when already due. An import is a submit of jobs with
//! what they have behind them; a dead one goes to the dead.

use ringback_core::clock::{Timestamp, millis_up};
use ringback_core::contract::{StoreError, SubmitResult, payload};
use ringback_core::job::{Due, History, NewJob};
use ringback_core::limits::MAX_IMPORTED_COUNT;

use crate::tables::{Body, Last, Queue, Record, Stage};
use crate::txn::{Keep, To, Txn};

/// A job that is asked for, packed.
pub(crate) struct Wanted {
    due: Due,
    /// When it was accepted elsewhere.
    created: Option<Timestamp>,
    /// Why it is dead.
    dead: Option<Box<str>>,
    /// As it will be, but for its times and its state.
    record: Record,
    body: Vec<u8>,
}

impl Wanted {
    pub(crate) fn pack(shard: u16, job: &NewJob) -> Self {
        let record = Record {
            number: 0,
            shard,
            locator: job.key.locator().0,
            content: job.content.0,
            created: 0,
            came: None,
            due: 0,
            topic: job.key.topic.as_str().into(),
            origin: job.delivery.callback.origin().into(),
            timeout: job.delivery.timeout.map_or(0, millis_up),
            attempts: 0,
            failures: 0,
            lost: 0,
            settled: 0,
            last: None,
            stage: Stage::Delayed,
            token: None,
        };
        let body = Body::pack(job.key.id.as_str(), &payload::pack(&job.delivery));
        Self { due: job.due, created: None, dead: None, record, body }
    }

    /// The same with what the job has behind it.
    pub(crate) fn with(mut self, history: &History) -> Self {
        self.created = history.created;
        self.dead = history.dead.as_deref().map(Into::into);
        self.record.attempts = history.attempts.min(MAX_IMPORTED_COUNT);
        self.record.failures = history.failures.min(MAX_IMPORTED_COUNT);
        self.record.last = history.last.as_ref().map(Last::from);
        self
    }

    /// About how much it writes.
    pub(crate) fn bytes(&self) -> usize {
        self.body.len() + 256
    }
}

/// An answer per job, in order, each with the job that has the name now.
pub(crate) fn submit(
    txn: &mut Txn<'_>,
    jobs: &[Wanted],
    keep: Keep,
) -> Result<Vec<(SubmitResult, Record)>, StoreError> {
    jobs.iter().map(|job| one(txn, job, keep)).collect()
}

/// A due time in ms; it may have passed.
pub(crate) fn due_time(txn: &Txn<'_>, due: Due) -> u64 {
    match due {
        Due::In(delay) if delay.is_zero() => txn.now(),
        Due::In(delay) => txn.now_up().saturating_add(millis_up(delay)),
        Due::At(at) => at.as_millis(),
    }
}

fn one(txn: &mut Txn<'_>, job: &Wanted, keep: Keep) -> Result<(SubmitResult, Record), StoreError> {
    match txn.tables.records.find(job.record.locator)? {
        Some(known) if txn.remembers(&known, keep) => {
            let same = known.content == job.record.content;
            return Ok((if same { SubmitResult::Repeated } else { SubmitResult::Conflict }, known));
        }
        // A tombstone past its time.
        Some(old) => txn.forget(&old)?,
        None => {}
    }
    let (now, shard) = (txn.now(), txn.shard());
    if let Some(limit) = txn.tables.counts.refuse(shard, &job.record.lane())? {
        return Ok((SubmitResult::Full(limit), job.record.clone()));
    }
    txn.tables.due.know(shard, &job.record.topic)?;
    let created = job.created.map_or(now, |at| at.as_millis().min(now));
    let came = job.created.map(|_| now);
    let due = due_time(txn, job.due);
    // When a dead job was last due stays as it was.
    let due = if job.dead.is_some() { due } else { due.max(now) };
    let to = match &job.dead {
        Some(reason) => To::Dead(reason.clone()),
        None if due <= now => To::Ready(Queue::Back),
        None => To::Delayed(due),
    };
    let record = Record { created, came, due, ..job.record.clone() };
    Ok((SubmitResult::Created, txn.add(record, &job.body, to)?))
}
