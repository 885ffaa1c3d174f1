//! The edges of jobs for pull. pull: ready → reserved, the first jobs of one lane, for a
//! consumer. `settle_receipts`: reserved → done, delayed, ready or dead, by a receipt alone.

use std::time::Duration;

use ringback_core::clock::{Timestamp, millis_up};
use ringback_core::contract::{
    AttemptOutcome, LeaseCheck, Pull, PullOutcome, PullReceipt, Receipt, Settled, StoreError,
};
use ringback_core::lane::lane_name;
use ringback_core::limits::truncated;
use ringback_core::outcome::LastAttempt;
use ringback_core::state::State;

use super::settle::later;
use crate::tables::{Body, Given, Last, PARKED, PULL, Queue, Record, Stage};
use crate::txn::{End, Keep, To, Txn};

/// The most bytes of jobs that one call takes, and one job beyond.
const BYTES: usize = 1024 * 1024;
/// The most bytes of a reason that are kept.
const MOST_REASON: usize = 64;

/// What a consumer asks for.
pub(crate) struct Grab {
    caller: String,
    sequence: u64,
    lane: String,
    limit: usize,
    /// In ms.
    ttr: Option<u64>,
    /// In ms.
    default_ttr: u64,
    bits: [u8; 8],
}

impl From<&Pull<'_>> for Grab {
    fn from(ask: &Pull<'_>) -> Self {
        Self {
            caller: ask.caller.to_owned(),
            sequence: ask.sequence,
            lane: lane_name(ask.topic, ""),
            limit: ask.limit,
            ttr: ask.ttr.map(millis_up),
            default_ttr: millis_up(ask.default_ttr),
            bits: ask.bits,
        }
    }
}

/// The jobs, and whether there is more.
pub(crate) fn pull(txn: &mut Txn<'_>, grab: &Grab) -> Result<(Vec<(Record, Body)>, bool), StoreError> {
    let (shard, now) = (txn.shard(), txn.now());
    if let Some(given) = txn.tables.callers.recall(shard, &grab.caller, grab.sequence, now)? {
        return super::reserve::again(txn, &given).map(|jobs| (jobs, true));
    }
    if txn.tables.counts.is_held(shard, &grab.lane)? {
        if !txn.tables.ready.first(shard, &grab.lane, 1)?.is_empty() {
            txn.tables.ready.set_turn(shard, &grab.lane, Some(PARKED))?;
        }
        return Ok((Vec::new(), false));
    }
    // One more than may be taken tells whether something is left.
    let entries = txn.tables.ready.first(shard, &grab.lane, grab.limit + 1)?;
    let (mut found, mut budget, mut passed) = (Vec::new(), BYTES, 0);
    for (position, number) in entries.iter().take(grab.limit) {
        if budget == 0 {
            break;
        }
        passed += 1;
        match super::reserve::both(txn, *number, *position)? {
            Some((job, body)) => {
                budget = budget.saturating_sub(body.payload.len() + 256);
                found.push((job, body));
            }
            None => txn.tables.ready.remove(shard, &grab.lane, *position)?,
        }
    }
    take(txn, grab, &mut found)?;
    let more = passed < entries.len();
    txn.tables.ready.set_turn(shard, &grab.lane, more.then_some(PULL))?;
    Ok((found, more))
}

/// A lease for each.
fn take(txn: &mut Txn<'_>, grab: &Grab, found: &mut [(Record, Body)]) -> Result<(), StoreError> {
    if found.is_empty() {
        return Ok(());
    }
    let mut next = txn.now_us().max(txn.row.lease + 1);
    let mut numbers = Vec::with_capacity(found.len());
    for (job, _) in found {
        let own = if job.timeout == 0 { grab.default_ttr } else { job.timeout };
        let deadline = txn.now_up() + grab.ttr.unwrap_or(own);
        job.attempts += 1;
        txn.enter(job, To::Reserved { lease: next, bits: grab.bits, deadline })?;
        numbers.push(job.number);
        next += 1;
    }
    txn.row.lease = next - 1;
    let given = Given { at: txn.now(), sequence: grab.sequence, bits: grab.bits, numbers };
    let shard = txn.shard();
    txn.tables.callers.remember(shard, &grab.caller, &given)
}

/// The job that a receipt is the current one of.
fn current(txn: &Txn<'_>, locator: [u8; 12], receipt: Receipt) -> Result<Option<Record>, StoreError> {
    let found = txn.tables.records.find(locator)?;
    Ok(found.filter(|job| matches!(job.stage, Stage::Reserved { lease, bits, .. } if lease == receipt.number && bits == receipt.bits)))
}

pub(crate) fn held(
    txn: &Txn<'_>,
    locator: [u8; 12],
    receipt: Receipt,
) -> Result<Option<(Record, Body)>, StoreError> {
    let Some(job) = current(txn, locator, receipt)? else { return Ok(None) };
    let body = txn.tables.records.body(job.number)?;
    Ok(body.map(|body| (job, body)))
}

/// The new deadline; none when the receipt is not the job's current one. `by` is in ms.
pub(crate) fn renew_receipt(
    txn: &mut Txn<'_>,
    locator: [u8; 12],
    receipt: Receipt,
    by: u64,
) -> Result<Option<u64>, StoreError> {
    if !super::renew(txn, locator, receipt, by)? {
        return Ok(None);
    }
    let stage = current(txn, locator, receipt)?.map(|job| job.stage);
    let Some(Stage::Reserved { deadline, .. }) = stage else { return Ok(None) };
    Ok(Some(deadline))
}

/// A word with the receipt that it is said by.
pub(crate) struct Said {
    locator: [u8; 12],
    receipt: Receipt,
    word: PullOutcome,
}

impl Said {
    pub(crate) fn new((receipt, word): &(PullReceipt, PullOutcome)) -> Self {
        Self { locator: receipt.locator.0, receipt: receipt.lease, word: word.clone() }
    }
}

pub(crate) fn settle_receipts(
    txn: &mut Txn<'_>,
    words: &[Said],
    counting: LeaseCheck,
    keep: Keep,
) -> Result<Vec<Settled>, StoreError> {
    let answers = words.iter().map(|said| one(txn, said, counting, keep)).collect::<Result<_, _>>()?;
    txn.trim(keep)?;
    Ok(answers)
}

fn one(txn: &mut Txn<'_>, said: &Said, counting: LeaseCheck, keep: Keep) -> Result<Settled, StoreError> {
    let Some(job) = txn.known(said.locator, keep)? else { return Ok(Settled::Stale) };
    let (is_finish, Receipt { number, bits: given }) = (said.word == PullOutcome::Finish, said.receipt);
    match job.stage {
        Stage::Reserved { lease, bits, cancel, deadline, .. } if lease == number && bits == given => {
            if counting == LeaseCheck::Expired && deadline > txn.now() {
                return Ok(Settled::Stale);
            }
            // No word was said by a lease that ran out, so none by it is a repetition.
            let settled = if counting == LeaseCheck::Expired { job.settled } else { number };
            apply(txn, said, Record { settled, ..job }, cancel)?;
            Ok(Settled::Applied)
        }
        // Only a finish repeats what has ended as done.
        _ if job.settled == number && is_finish == (job.state() == State::Done) => Ok(Settled::Replayed),
        Stage::Delayed
        | Stage::Ready { .. }
        | Stage::Reserved { .. }
        | Stage::Dead { .. }
        | Stage::Done { .. }
        | Stage::Cancelled { .. } => Ok(Settled::Stale),
    }
}

fn apply(txn: &mut Txn<'_>, said: &Said, mut job: Record, cancel: bool) -> Result<(), StoreError> {
    let (number, settled) = (said.receipt.number, job.settled);
    tell(txn, &job, said, cancel)?;
    match &said.word {
        PullOutcome::Finish => txn.finish(job, End::Done, settled),
        _ if cancel => txn.finish(job, End::Cancelled, settled),
        PullOutcome::Retry { after, error } => {
            failed(&mut job, &seen(txn, number, error.as_ref()));
            later(txn, &mut job, *after)
        }
        PullOutcome::Bury { reason, error } => {
            failed(&mut job, &seen(txn, number, error.as_ref()));
            txn.die(&mut job, truncated(reason, MOST_REASON).into())
        }
        PullOutcome::Release { after } if after.is_zero() => txn.enter(&mut job, To::Ready(Queue::Front)),
        PullOutcome::Release { after } => later(txn, &mut job, *after),
    }
}

/// What came of the attempt. A job that is to be cancelled waits for no other.
fn tell(txn: &mut Txn<'_>, job: &Record, said: &Said, cancel: bool) -> Result<(), StoreError> {
    let (number, now_up) = (said.receipt.number, txn.now_up());
    let due = |after: &Duration| (!cancel).then(|| now_up.saturating_add(millis_up(*after)));
    match &said.word {
        PullOutcome::Finish => {
            let last = seen(txn, number, None);
            txn.tell_seen(job, AttemptOutcome::Complete, None, &last)
        }
        PullOutcome::Retry { after, error } => {
            let last = seen(txn, number, error.as_ref());
            txn.tell_seen(job, AttemptOutcome::Retry, due(after), &last)
        }
        PullOutcome::Bury { error, .. } => {
            let last = seen(txn, number, error.as_ref());
            txn.tell_seen(job, AttemptOutcome::Bury, None, &last)
        }
        PullOutcome::Release { after } => {
            txn.tell_attempt(job, AttemptOutcome::Release, due(after).filter(|_| !after.is_zero()))
        }
    }
}

/// A lease's number tells when it began.
fn seen(txn: &Txn<'_>, number: u64, error: Option<&String>) -> LastAttempt {
    let at = (number / 1000).min(txn.now());
    LastAttempt {
        at: Timestamp::from_millis(at),
        status: None,
        error: error.cloned(),
        duration: Duration::from_millis(txn.now() - at),
    }
}

fn failed(job: &mut Record, last: &LastAttempt) {
    (job.failures, job.lost) = (job.failures + 1, 0);
    job.last = Some(Last::from(last));
}
