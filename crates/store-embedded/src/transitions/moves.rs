//! Changes of jobs on request. cancel: delayed, ready, dead → cancelled; a reserved job is marked, and its settle
//! cancels it. reschedule: delayed → delayed at another time, or ready. run: delayed → ready. revive: dead → ready.
//! purge: dead → gone, one job or many.

use ringback_core::job::{JobKey, Locator};
use ringback_core::state::State;
use ringback_core::store_types::{
    Cancelled, DeadCursor, Move, MoveResult, Shard, StoreError, Token, TransitionName, Wake,
};

use super::new_record::due_time;
use crate::error::Result;
use crate::queries::dead::numbers;
use crate::tables::{Record, Stage};
use crate::txn::state_changes::{End, To};
use crate::txn::{KeepTombstones, Txn};
use crate::{EmbeddedStore, TRANSITION_BYTES, answers};

impl EmbeddedStore {
    pub async fn cancel(&self, shard: Shard, key: &JobKey) -> Result<Cancelled, StoreError> {
        let (locator, keep) = (key.locator().0, self.keep_tombstones());
        self.call(shard, TRANSITION_BYTES, move |txn| cancel(txn, locator, keep)).await
    }

    pub async fn move_job(&self, shard: Shard, key: &JobKey, what: Move) -> Result<MoveResult, StoreError> {
        let (locator, keep) = (key.locator().0, self.keep_tombstones());
        let moved = self.call(shard, TRANSITION_BYTES, move |txn| move_job(txn, locator, what, keep)).await?;
        Ok(match moved {
            None => MoveResult::Unknown,
            Some((true, record)) => MoveResult::Applied(answers::job(record, key.clone())),
            Some((false, record)) => MoveResult::Refused(answers::job(record, key.clone())),
        })
    }

    pub async fn purge_many(&self, shard: Shard, places: &[DeadCursor]) -> Result<u64, StoreError> {
        let (jobs, bytes) = (numbers(places), places.len() * TRANSITION_BYTES);
        self.call(shard, bytes, move |txn| purge_many(txn, &jobs)).await
    }
}

pub(super) fn cancel(txn: &mut Txn<'_>, locator: [u8; 12], keep: KeepTombstones) -> Result<Cancelled> {
    let Some(mut job) = txn.find(locator, keep)? else { return Ok(Cancelled::Unknown) };
    txn.because(TransitionName::Cancel, None);
    match job.stage {
        Stage::Done { .. } => Ok(Cancelled::TooLate),
        Stage::Cancelled { maybe_in_flight, .. } => {
            Ok(Cancelled::Cancelled { in_flight_unknown: maybe_in_flight })
        }
        Stage::Reserved { deadline, ref mut cancel, .. } => {
            if !std::mem::replace(cancel, true) {
                txn.tables.records.put(&job)?;
                txn.log_transition(&job, Some(State::Reserved), Some(State::Reserved), Some("requested"))?;
                txn.wake(Wake::CancelRequested(Locator(locator)));
            }
            Ok(Cancelled::Requested { in_flight_unknown: deadline <= txn.now() })
        }
        Stage::Delayed | Stage::Ready { .. } | Stage::Waiting(_) | Stage::Dead { .. } => {
            // After an expired lease the request may still be on its way.
            let (in_flight_unknown, settled) = (job.maybe_in_flight(), job.settled);
            txn.finish(job, End::Cancelled, settled)?;
            txn.evict_tombstones(keep)?;
            Ok(Cancelled::Cancelled { in_flight_unknown })
        }
    }
}

/// Moves a job. Returns whether the move took effect, now or before by the same token, and the job afterwards; `None`
/// for an unknown job. A run of a ready or reserved job counts as done; any other wrong state changes nothing.
pub(super) fn move_job(
    txn: &mut Txn<'_>,
    locator: [u8; 12],
    what: Move,
    keep: KeepTombstones,
) -> Result<Option<(bool, Record)>> {
    let Some(mut job) = txn.find(locator, keep)? else { return Ok(None) };
    let name = match what {
        Move::Reschedule(..) => TransitionName::Reschedule,
        Move::Run(_) => TransitionName::Run,
        Move::Revive(_) => TransitionName::Revive,
        Move::Purge => TransitionName::Purge,
    };
    txn.because(name, None);
    let is_done = match what {
        Move::Reschedule(.., token) | Move::Run(token) | Move::Revive(token)
            if job.token == Some(token.0) =>
        {
            true
        }
        Move::Reschedule(due, token) => {
            let due = due_time(txn, due);
            move_delayed(txn, &mut job, token, Some(due).filter(|due| *due > txn.now()))?
        }
        Move::Run(token) => {
            let has_run = matches!(job.state(), State::Ready | State::Reserved);
            has_run || move_delayed(txn, &mut job, token, None)?
        }
        Move::Revive(Token(token)) if job.state() == State::Dead => {
            revive(txn, &mut job, token)?;
            true
        }
        Move::Purge if job.state() == State::Dead => {
            txn.purge(&job)?;
            true
        }
        Move::Revive(_) | Move::Purge => false,
    };
    Ok(Some((is_done, job)))
}

/// Moves a delayed job to the time `later`, in ms, or makes it ready if that is `None`. Returns false for other states.
fn move_delayed(
    txn: &mut Txn<'_>,
    job: &mut Record,
    Token(token): Token,
    later: Option<u64>,
) -> Result<bool> {
    if job.state() != State::Delayed {
        return Ok(false);
    }
    job.token = Some(token);
    match later {
        Some(due) => {
            txn.number_arrival(job)?;
            txn.enter(job, To::Delayed(due))?;
        }
        None => {
            txn.make_ready(job)?;
            let shard = txn.shard();
            txn.tables.due.tidy(shard, &job.topic)?;
        }
    }
    Ok(true)
}

/// Makes a dead job ready, with this token, without failures and lost leases. The last failed attempt stays visible.
pub(crate) fn revive(txn: &mut Txn<'_>, job: &mut Record, token: [u8; 8]) -> Result<()> {
    (job.token, job.failures, job.lost) = (Some(token), 0, 0);
    txn.make_ready(job)
}

/// Purges jobs, given by time of death in ms and number, that are still dead since then. Returns how many were purged.
fn purge_many(txn: &mut Txn<'_>, jobs: &[(u64, u64)]) -> Result<u64> {
    let mut purged = 0;
    txn.because(TransitionName::Purge, None);
    for (died, number) in jobs {
        if let Some(job) = still_dead(txn, *died, *number)? {
            txn.purge(&job)?;
            purged += 1;
        }
    }
    Ok(purged)
}

/// Returns a job of this shard; `None` unless it has been dead since exactly `died`, in ms.
pub(crate) fn still_dead(txn: &Txn<'_>, died: u64, number: u64) -> Result<Option<Record>> {
    let is_still = |job: &Record| {
        job.shard == txn.shard() && matches!(job.stage, Stage::Dead { since, .. } if since == died)
    };
    Ok(txn.tables.records.get(number)?.filter(is_still))
}
