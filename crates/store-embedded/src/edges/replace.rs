//! What a submit does when its key is taken: refuses it, recognises its repetition, puts it in the place
//! of the job that is there, or begins a new life after the end of the former one.

use std::time::Duration;

use ringback_core::contract::{SubmitResult, Token};
use ringback_core::job::IfExists;

use super::new_record::NewRecord;
use crate::error::Result;
use crate::tables::{Life, Record, Stage};
use crate::txn::Txn;

/// What becomes of the job that has the key.
pub(crate) enum Verdict {
    /// Nothing.
    Keep(SubmitResult),
    /// The submit takes its place.
    Replace(SubmitResult),
    /// It has ended. The submit takes the place of its tombstone.
    Begin,
}

/// Decides about a submit whose key `known` has.
pub(crate) fn judge(txn: &Txn<'_>, job: &NewRecord, known: &Record) -> Verdict {
    let is_same = known.content == job.record.content;
    let unchanged = Verdict::Keep(if is_same { SubmitResult::Repeated } else { SubmitResult::Conflict });
    let is_repeated = |Token(token): Token| known.submitted == Some(token);
    let replaced = match job.if_exists {
        IfExists::Refuse if is_same && matches!(known.stage, Stage::Cancelled { .. }) => {
            return Verdict::Keep(SubmitResult::Cancelled);
        }
        IfExists::Refuse => return unchanged,
        IfExists::Replace { token } | IfExists::Postpone { token, .. } if is_repeated(token) => {
            return unchanged;
        }
        IfExists::Replace { .. } => SubmitResult::Replaced,
        IfExists::Postpone { .. } => SubmitResult::Postponed,
    };
    match known.stage {
        Stage::Delayed | Stage::Ready { .. } | Stage::Dead { .. } => Verdict::Replace(replaced),
        Stage::Reserved { deadline, .. } => {
            let left = deadline.saturating_mul(1000).saturating_sub(txn.now_us());
            Verdict::Keep(SubmitResult::Reserved { retry_after: Duration::from_micros(left) })
        }
        Stage::Done { .. } | Stage::Cancelled { .. } => Verdict::Begin,
    }
}

/// Puts a submit in the place of a job that has not ended. The key and the number stay.
pub(crate) fn replace(txn: &mut Txn<'_>, job: &NewRecord, known: &Record) -> Result<Record> {
    let record = Record { number: known.number, token: known.token, ..job.record.clone() };
    let goes_on = !known.was_tried() && !matches!(known.stage, Stage::Dead { .. });
    let mut record = if goes_on {
        Record {
            created: known.created,
            imported: known.imported,
            attempts: known.attempts,
            failures: known.failures,
            last: known.last.clone(),
            life: known.life,
            ..record
        }
    } else {
        next_life(txn, known, record)
    };
    let (due, to) = job.enters(txn, record.created);
    record.due = due;
    let is_postponed = matches!(job.if_exists, IfExists::Postpone { .. });
    txn.because(job.edge, Some(if is_postponed { "postponed" } else { "replaced" }));
    txn.replace(known, record, &job.body, to)
}

/// The record with the beginning of a new life, after the life of `former`.
pub(crate) fn next_life(txn: &Txn<'_>, former: &Record, record: Record) -> Record {
    Record {
        created: txn.now().max(former.created + 1),
        attempts: former.attempts,
        life: Some(Life { lease: txn.row.lease, attempts: former.attempts }),
        ..record
    }
}
