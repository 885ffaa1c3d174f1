//! settle: reserved → done, delayed, ready, dead or, if that was requested, cancelled, according to the outcome. Push
//! and pull jobs differ in the data about the attempt, and in the effect of a receipt that is no longer current.

use std::borrow::Cow;
use std::time::Duration;

use ringback_core::clock::{Timestamp, millis_up};
use ringback_core::limits::{MAX_REASON, truncated};
use ringback_core::outcome::{LastAttempt, Outcome};
use ringback_core::state::State;
use ringback_core::store_types::{
    AttemptOutcome, Lease, LeaseCheck, Receipt, SettleResult, Shard, StoreError, Success, TransitionName,
};

use crate::error::Result;
use crate::tables::{Last, QueueEnd, Record, Stage};
use crate::txn::state_changes::{End, To};
use crate::txn::{KeepTombstones, Txn};
use crate::{EmbeddedStore, TRANSITION_BYTES};

/// The reason of a job that is dead since too many of its leases expired.
pub(crate) const LOST: &str = "lost";

impl EmbeddedStore {
    pub async fn settle(
        &self,
        shard: Shard,
        items: &[(Lease, Outcome)],
    ) -> Result<Vec<SettleResult>, StoreError> {
        let settlements: Vec<_> = items.iter().map(Settlement::push).collect();
        let (keep, bytes) = (self.keep_tombstones(), items.len() * TRANSITION_BYTES);
        self.call(shard, bytes, move |txn| settle(txn, &settlements, keep)).await
    }

    pub async fn settle_receipts(
        &self,
        shard: Shard,
        items: &[(Receipt, Outcome)],
        check: LeaseCheck,
    ) -> Result<Vec<SettleResult>, StoreError> {
        let settlements: Vec<_> = items.iter().map(|item| Settlement::pull(item, check)).collect();
        let (keep, bytes) = (self.keep_tombstones(), items.len() * TRANSITION_BYTES);
        self.call(shard, bytes, move |txn| settle(txn, &settlements, keep)).await
    }
}

/// The outcome of one attempt, with its receipt.
pub(crate) struct Settlement {
    receipt: Receipt,
    outcome: Outcome,
    source: Source,
    /// The answer of the receiver, if the success of the job has a notice.
    success: Option<Success>,
}

/// The caller of the settlement.
#[derive(Clone, Copy)]
enum Source {
    /// A notifier, with the response to a successful attempt if it kept that: status, and ms that it took.
    Push { response: Option<(u16, u32)> },
    /// A consumer, or a carrier for a consumer whose lease expired.
    Pull(LeaseCheck),
}

impl Settlement {
    pub(crate) fn push((lease, outcome): &(Lease, Outcome)) -> Self {
        let source = Source::Push { response: lease.response };
        let success = lease.success.as_deref().filter(|_| *outcome == Outcome::Complete).cloned();
        Self { receipt: lease.grant.receipt, outcome: outcome.clone(), source, success }
    }

    fn pull((receipt, outcome): &(Receipt, Outcome), check: LeaseCheck) -> Self {
        Self { receipt: *receipt, outcome: outcome.clone(), source: Source::Pull(check), success: None }
    }

    /// Whether a carrier settles an expired lease in place of its consumer.
    fn is_for_expired(&self) -> bool {
        matches!(self.source, Source::Pull(LeaseCheck::Expired))
    }

    fn attempt(&self, txn: &Txn<'_>) -> Option<Cow<'_, LastAttempt>> {
        let last = match &self.outcome {
            Outcome::Retry { last, .. } | Outcome::Bury { last, .. } => Some(last),
            Outcome::Complete | Outcome::Release { .. } | Outcome::Return => None,
        };
        match (self.source, &self.outcome) {
            (Source::Push { response }, Outcome::Complete) => response.map(|(status, ms)| {
                let duration = Duration::from_millis(ms.into());
                Cow::Owned(LastAttempt { status: Some(status), duration, ..LastAttempt::default() })
            }),
            (Source::Push { .. }, _) => last.map(Cow::Borrowed),
            (Source::Pull(_), _) => {
                // The number of a lease is the time at which it began, in µs.
                let at = (self.receipt.lease.number / 1000).min(txn.now());
                let duration = Duration::from_millis(txn.now() - at);
                let error = last.and_then(|last| last.error.clone());
                let at = Timestamp::from_millis(at);
                Some(Cow::Owned(LastAttempt { at, status: None, error, duration }))
            }
        }
    }
}

/// Settles jobs and evicts tombstones. Returns a result for each settlement, in order.
pub(crate) fn settle(
    txn: &mut Txn<'_>,
    settlements: &[Settlement],
    keep: KeepTombstones,
) -> Result<Vec<SettleResult>> {
    let answers =
        settlements.iter().map(|settlement| settle_one(txn, settlement, keep)).collect::<Result<_>>()?;
    txn.evict_tombstones(keep)?;
    Ok(answers)
}

fn settle_one(txn: &mut Txn<'_>, settlement: &Settlement, keep: KeepTombstones) -> Result<SettleResult> {
    let Some(job) = txn.find(settlement.receipt.locator.0, keep)? else { return Ok(SettleResult::Stale) };
    if let Stage::Reserved { cancel, deadline, .. } = job.stage
        && job.lease() == Some(settlement.receipt.lease)
    {
        if settlement.is_for_expired() && deadline > txn.now() {
            return Ok(SettleResult::Stale);
        }
        apply(txn, settlement, job, cancel)?;
        return Ok(SettleResult::Applied);
    }
    settle_again(txn, settlement, job)
}

/// Handles a receipt that is no longer current: `Replayed` for the settlement that came before, `Late` for a success
/// that still counts, which makes a push job done, else `Stale`.
fn settle_again(txn: &mut Txn<'_>, settlement: &Settlement, job: Record) -> Result<SettleResult> {
    let number = settlement.receipt.lease.number;
    let is_complete = settlement.outcome == Outcome::Complete;
    let is_settled = job.settled == number;
    match settlement.source {
        Source::Pull(_) => {
            let is_same = is_settled && is_complete == (job.state() == State::Done);
            Ok(if is_same { SettleResult::Replayed } else { SettleResult::Stale })
        }
        Source::Push { .. } if is_settled => Ok(SettleResult::Replayed),
        Source::Push { .. } => {
            let is_over = job.state().is_terminal() || job.reason().is_some_and(|reason| reason != LOST);
            if !is_complete || is_over || job.is_former(number) {
                return Ok(SettleResult::Stale);
            }
            txn.because(TransitionName::Complete, Some("late"));
            finish(txn, settlement, job, number)?;
            Ok(SettleResult::Late)
        }
    }
}

fn apply(txn: &mut Txn<'_>, settlement: &Settlement, mut job: Record, cancel: bool) -> Result<()> {
    let attempt = settlement.attempt(txn);
    // A consumer whose lease expired has not settled it, so its own settlement is not a repetition.
    if !settlement.is_for_expired() {
        job.settled = settlement.receipt.lease.number;
    }
    let settled = job.settled;
    txn.because(edge_name(&settlement.outcome), None);
    publish(txn, &job, &settlement.outcome, attempt.as_deref(), cancel)?;
    match &settlement.outcome {
        Outcome::Complete => finish(txn, settlement, job, settled),
        _ if cancel => txn.finish(job, End::Cancelled, settled),
        Outcome::Retry { after, .. } => {
            count_failure(&mut job, attempt.as_deref());
            enter_later(txn, &mut job, *after)
        }
        Outcome::Bury { reason, .. } => {
            count_failure(&mut job, attempt.as_deref());
            txn.die(&mut job, truncated(reason.as_ref(), MAX_REASON).into())
        }
        Outcome::Release { after } if after.is_zero() => txn.enter(&mut job, To::Ready(QueueEnd::Front)),
        Outcome::Release { after } => enter_later(txn, &mut job, *after),
        Outcome::Return => {
            job.attempts = job.attempts.saturating_sub(1);
            txn.enter(&mut job, To::Ready(QueueEnd::Front))
        }
    }
}

/// Ends a job as done, and puts the notice of its success into the outbox if there is to be one.
fn finish(txn: &mut Txn<'_>, settlement: &Settlement, job: Record, settled: u64) -> Result<()> {
    if let Some(success) = &settlement.success {
        txn.note_success(&job, success)?;
    }
    txn.finish(job, End::Done, settled)
}

const fn edge_name(outcome: &Outcome) -> TransitionName {
    match outcome {
        Outcome::Complete => TransitionName::Complete,
        Outcome::Retry { .. } => TransitionName::Retry,
        Outcome::Bury { .. } => TransitionName::Bury,
        Outcome::Release { .. } | Outcome::Return => TransitionName::Release,
    }
}

/// Publishes the event of the end of an attempt. If the job is being cancelled, the event has no next due time.
fn publish(
    txn: &mut Txn<'_>,
    job: &Record,
    outcome: &Outcome,
    attempt: Option<&LastAttempt>,
    cancel: bool,
) -> Result<()> {
    let now_up = txn.now_up();
    let due = |after: &Duration| (!cancel).then(|| now_up.saturating_add(millis_up(*after)));
    let (ended, due) = match outcome {
        Outcome::Complete => (AttemptOutcome::Complete, None),
        Outcome::Retry { after, .. } => (AttemptOutcome::Retry, due(after)),
        Outcome::Bury { .. } => (AttemptOutcome::Bury, None),
        // An attempt that does not count has no response.
        Outcome::Release { after } => {
            let due = due(after).filter(|_| !after.is_zero());
            return txn.publish_attempt(job, AttemptOutcome::Release, due, None);
        }
        Outcome::Return => return txn.publish_attempt(job, AttemptOutcome::Release, None, None),
    };
    txn.publish_attempt(job, ended, due, attempt)
}

fn count_failure(job: &mut Record, attempt: Option<&LastAttempt>) {
    (job.failures, job.lost) = (job.failures + 1, 0);
    job.last = attempt.map(Last::from);
}

fn enter_later(txn: &mut Txn<'_>, job: &mut Record, after: Duration) -> Result<()> {
    let due = txn.now_up().saturating_add(millis_up(after));
    txn.enter(job, To::Delayed(due))
}
