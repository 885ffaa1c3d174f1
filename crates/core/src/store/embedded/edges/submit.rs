//! submit: nothing → delayed, or ready when already due.

use crate::clock::millis_up;
use crate::job::{Due, NewJob};
use crate::store::embedded::tables::{Body, Queue, Record, Stage};
use crate::store::embedded::txn::{Keep, To, Txn};
use crate::store::{Answer, StoreError, payload};

/// A job that is asked for, packed.
pub(in crate::store::embedded) struct Wanted {
    due: Due,
    /// As it will be, but for its times and its state.
    record: Record,
    body: Vec<u8>,
}

impl Wanted {
    pub(in crate::store::embedded) fn pack(shard: u16, job: &NewJob) -> Self {
        let record = Record {
            number: 0,
            shard,
            locator: job.key.locator().0,
            content: job.content.0,
            created: 0,
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
        };
        let body = Body::pack(job.key.id.as_str(), &payload::pack(&job.delivery));
        Self { due: job.due, record, body }
    }

    /// About how much it writes.
    pub(in crate::store::embedded) fn bytes(&self) -> usize {
        self.body.len() + 256
    }
}

/// An answer per job, in order, each with the job that has the name now.
pub(in crate::store::embedded) fn submit(
    txn: &mut Txn<'_>,
    jobs: &[Wanted],
    keep: Keep,
) -> Result<Vec<(Answer, Record)>, StoreError> {
    jobs.iter().map(|job| one(txn, job, keep)).collect()
}

fn one(txn: &mut Txn<'_>, job: &Wanted, keep: Keep) -> Result<(Answer, Record), StoreError> {
    if let Some(known) = txn.known(job.record.locator, keep)? {
        let same = known.content == job.record.content;
        return Ok((if same { Answer::Repeated } else { Answer::Conflict }, known));
    }
    // What is left is a tombstone past its time.
    if let Some(old) = txn.tables.records.find(job.record.locator)? {
        txn.forget(&old)?;
    }
    let (now, shard) = (txn.now(), txn.shard());
    let due = match job.due {
        Due::In(delay) if delay.is_zero() => now,
        Due::In(delay) => txn.now_up().saturating_add(millis_up(delay)),
        Due::At(at) => at.as_millis().max(now),
    };
    txn.tables.due.know(shard, &job.record.topic)?;
    let record = Record { created: now, due, ..job.record.clone() };
    let to = if due <= now { To::Ready(Queue::Back) } else { To::Delayed(due) };
    Ok((Answer::Created, txn.add(record, &job.body, to)?))
}
