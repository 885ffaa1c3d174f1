//! A submit whose key is taken: decides whether it is refused, is a repetition, or takes the place of the job or the
//! tombstone that has the key; and puts it in the place of a job.

use std::time::Duration;

use ringback_core::job::IfExists;
use ringback_core::store_types::{SubmitResult, Token};

use super::new_record::NewRecord;
use crate::error::Result;
use crate::tables::{Generation, Record, Stage};
use crate::txn::Txn;

/// The decision about a submit whose key is taken.
pub(crate) enum Replacement {
    /// The stored job stays as it is.
    Keep(SubmitResult),
    /// The submit takes the place of the stored job or tombstone.
    Replace(SubmitResult),
}

/// Decides about a submit whose key belongs to the stored job or tombstone `known`.
pub(crate) fn judge(txn: &Txn<'_>, job: &NewRecord, known: &Record) -> Replacement {
    let is_same = known.content == job.record.content;
    let unchanged = Replacement::Keep(if is_same { SubmitResult::Repeated } else { SubmitResult::Conflict });
    let is_repeated = |Token(token): Token| known.submitted == Some(token);
    let replaced = match job.if_exists {
        IfExists::Refuse | IfExists::Update { .. }
            if is_same && matches!(known.stage, Stage::Cancelled { .. }) =>
        {
            return Replacement::Keep(SubmitResult::Cancelled);
        }
        IfExists::Replace { token } | IfExists::Update { token } | IfExists::Postpone { token, .. }
            if is_repeated(token) =>
        {
            return unchanged;
        }
        IfExists::Refuse => return unchanged,
        IfExists::Update { .. } if is_same || has_ended(&known.stage) => return unchanged,
        IfExists::Replace { .. } | IfExists::Update { .. } => SubmitResult::Replaced,
        IfExists::Postpone { .. } => SubmitResult::Postponed,
    };
    match known.stage {
        Stage::Delayed | Stage::Ready { .. } | Stage::Waiting(_) | Stage::Dead { .. } => {
            Replacement::Replace(replaced)
        }
        Stage::Reserved { deadline, .. } => {
            let left = deadline.saturating_mul(1000).saturating_sub(txn.now_us());
            Replacement::Keep(SubmitResult::Reserved { retry_after: Duration::from_micros(left) })
        }
        Stage::Done { .. } | Stage::Cancelled { .. } => Replacement::Replace(SubmitResult::Created),
    }
}

/// Whether a job is dead, done or cancelled.
fn has_ended(stage: &Stage) -> bool {
    match stage {
        Stage::Dead { .. } | Stage::Done { .. } | Stage::Cancelled { .. } => true,
        Stage::Delayed | Stage::Ready { .. } | Stage::Waiting(_) | Stage::Reserved { .. } => false,
    }
}

/// Puts a submit in the place of a delayed, ready or dead job, and returns the new record. The key and the number stay.
/// An untried job also keeps its times and counts; after a tried or dead one a new generation begins.
pub(crate) fn replace(txn: &mut Txn<'_>, job: &NewRecord, known: &Record) -> Result<Record> {
    let record = Record { number: known.number, token: known.token, ..job.record.clone() };
    let continues = !known.was_tried() && !matches!(known.stage, Stage::Dead { .. });
    let mut record = if continues {
        Record {
            created: known.created,
            imported: known.imported,
            attempts: known.attempts,
            failures: known.failures,
            last: known.last.clone(),
            generation: known.generation,
            ..record
        }
    } else {
        next_generation(txn, known, record)
    };
    let (due, to) = job.enters(txn, record.created);
    record.due = due;
    let is_postponed = matches!(job.if_exists, IfExists::Postpone { .. });
    txn.because(job.transition, Some(if is_postponed { "postponed" } else { "replaced" }));
    txn.replace(known, record, &job.body, to)
}

/// Returns `record` as the first one of a new generation: created now and later than `former`, with attempts counted on
/// from it, so that leases of former generations count no more.
pub(crate) fn next_generation(txn: &Txn<'_>, former: &Record, record: Record) -> Record {
    Record {
        created: txn.now().max(former.created + 1),
        attempts: former.attempts,
        generation: Some(Generation { lease: txn.row.lease, attempts: former.attempts }),
        ..record
    }
}
