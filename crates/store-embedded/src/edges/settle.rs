//! settle: reserved → done (complete), delayed (retry), dead (bury), or ready or delayed
//! (release, without or with a delay).

use std::time::Duration;

use ringback_core::clock::millis_up;
use ringback_core::contract::{AttemptOutcome, Lateness, Lease, Receipt, Settled, StoreError};
use ringback_core::outcome::{LastAttempt, Outcome};
use ringback_core::state::State;

use crate::tables::{Last, Queue, Record, Stage};
use crate::txn::{End, Keep, To, Txn};

/// Why a job is dead whose leases ran out.
pub(crate) const LOST: &str = "lost";

/// The word on one lease.
pub(crate) struct Word {
    locator: [u8; 12],
    receipt: Receipt,
    outcome: Outcome,
    /// What a success was answered.
    seen: Option<LastAttempt>,
}

impl Word {
    pub(crate) fn new((lease, outcome): &(Lease, Outcome)) -> Self {
        let seen = lease.response().map(|(status, took)| {
            let duration = Duration::from_millis(took.into());
            LastAttempt { status: Some(status), duration, ..LastAttempt::default() }
        });
        Self {
            locator: lease.grant().locator.0,
            receipt: lease.grant().receipt,
            outcome: outcome.clone(),
            seen,
        }
    }
}

pub(crate) fn settle(
    txn: &mut Txn<'_>,
    words: &[Word],
    lateness: &Lateness,
    keep: Keep,
) -> Result<Vec<Settled>, StoreError> {
    let answers = words.iter().map(|word| one(txn, word, keep)).collect::<Result<Vec<_>, _>>()?;
    // A call that is only a replay has told its lateness before.
    let counted = answers.iter().any(|answer| matches!(answer, Settled::Applied | Settled::Late));
    if counted && lateness.count() > 0 {
        let (shard, now) = (txn.shard(), txn.now());
        txn.tables.minutes.add(shard, now, lateness)?;
    }
    txn.trim(keep)?;
    Ok(answers)
}

fn one(txn: &mut Txn<'_>, word: &Word, keep: Keep) -> Result<Settled, StoreError> {
    let Some(job) = txn.known(word.locator, keep)? else { return Ok(Settled::Stale) };
    let Receipt { number, bits: given } = word.receipt;
    match job.stage {
        Stage::Reserved { lease, bits, cancel, .. } if lease == number && bits == given => {
            apply(txn, word, job, cancel)?;
            Ok(Settled::Applied)
        }
        _ if job.settled == number => Ok(Settled::Replayed),
        Stage::Done { .. } | Stage::Cancelled { .. } => Ok(Settled::Stale),
        Stage::Delayed | Stage::Ready { .. } | Stage::Reserved { .. } | Stage::Dead { .. } => {
            late(txn, word, job)
        }
    }
}

fn apply(txn: &mut Txn<'_>, word: &Word, mut job: Record, cancel: bool) -> Result<(), StoreError> {
    let number = word.receipt.number;
    job.settled = number;
    tell(txn, &job, word, cancel)?;
    match &word.outcome {
        Outcome::Complete => txn.finish(job, End::Done, number),
        _ if cancel => txn.finish(job, End::Cancelled, number),
        Outcome::Retry { after, last } => {
            failed(&mut job, last);
            later(txn, &mut job, *after)
        }
        Outcome::Bury { reason, last } => {
            failed(&mut job, last);
            txn.die(&mut job, reason.name().into())
        }
        Outcome::Release { after } if after.is_zero() => txn.enter(&mut job, To::Ready(Queue::Front)),
        Outcome::Release { after } => later(txn, &mut job, *after),
    }
}

/// What came of the attempt. A job that is to be cancelled waits for no other.
fn tell(txn: &mut Txn<'_>, job: &Record, word: &Word, cancel: bool) -> Result<(), StoreError> {
    let now_up = txn.now_up();
    let due = |after: &Duration| (!cancel).then(|| now_up.saturating_add(millis_up(*after)));
    match (&word.outcome, &word.seen) {
        (Outcome::Complete, Some(seen)) => txn.tell_seen(job, AttemptOutcome::Complete, None, seen),
        (Outcome::Complete, None) => txn.tell_attempt(job, AttemptOutcome::Complete, None),
        (Outcome::Retry { after, last }, _) => txn.tell_seen(job, AttemptOutcome::Retry, due(after), last),
        (Outcome::Bury { last, .. }, _) => txn.tell_seen(job, AttemptOutcome::Bury, None, last),
        (Outcome::Release { after }, _) => {
            txn.tell_attempt(job, AttemptOutcome::Release, due(after).filter(|_| !after.is_zero()))
        }
    }
}

fn failed(job: &mut Record, last: &LastAttempt) {
    (job.failures, job.lost) = (job.failures + 1, 0);
    job.last = Some(Last::from(last));
}

pub(crate) fn later(txn: &mut Txn<'_>, job: &mut Record, after: Duration) -> Result<(), StoreError> {
    let due = txn.now_up().saturating_add(millis_up(after));
    txn.enter(job, To::Delayed(due))
}

/// A receipt that is no longer current: only a success still counts, and only for this very
/// job. A lease older than the record belongs to an earlier job of the same id.
fn late(txn: &mut Txn<'_>, word: &Word, job: Record) -> Result<Settled, StoreError> {
    let over = matches!(&job.stage, Stage::Dead { reason, .. } if **reason != *LOST);
    let earlier = word.receipt.number < job.arrived().saturating_mul(1000);
    if word.outcome != Outcome::Complete || over || earlier {
        return Ok(Settled::Stale);
    }
    debug_assert!(!matches!(job.state(), State::Done | State::Cancelled));
    txn.finish(job, End::Done, word.receipt.number)?;
    Ok(Settled::Late)
}
