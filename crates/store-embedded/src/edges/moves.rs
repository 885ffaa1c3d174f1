//! reschedule: delayed → delayed at another time. run: delayed → ready. revive: dead → ready.
//! purge: dead → gone.

use ringback_core::contract::{Move, StoreError, Token};
use ringback_core::state::State;

use super::submit::due_time;
use crate::tables::Record;
use crate::txn::{Keep, To, Txn};

/// None for an unknown job, else whether it is as it was to be, and the job.
type Told = Option<(bool, Record)>;

pub(crate) fn move_job(
    txn: &mut Txn<'_>,
    locator: [u8; 12],
    what: Move,
    keep: Keep,
) -> Result<Told, StoreError> {
    let Some(mut job) = txn.known(locator, keep)? else { return Ok(None) };
    let is_done = match what {
        Move::Reschedule(.., token) | Move::Run(token) | Move::Revive(token)
            if job.token == Some(token.0) =>
        {
            true
        }
        Move::Reschedule(due, token) => {
            let due = due_time(txn, due);
            from_delayed(txn, &mut job, token, Some(due).filter(|due| *due > txn.now()))?
        }
        Move::Run(token) => {
            let is_under_way = matches!(job.state(), State::Ready | State::Reserved);
            is_under_way || from_delayed(txn, &mut job, token, None)?
        }
        Move::Revive(token) => revive(txn, &mut job, token)?,
        Move::Purge => purge(txn, &job)?,
    };
    Ok(Some((is_done, job)))
}

/// To a later time, or to be ready now.
fn from_delayed(
    txn: &mut Txn<'_>,
    job: &mut Record,
    Token(token): Token,
    later: Option<u64>,
) -> Result<bool, StoreError> {
    if job.state() != State::Delayed {
        return Ok(false);
    }
    job.token = Some(token);
    match later {
        Some(due) => txn.enter(job, To::Delayed(due))?,
        None => {
            txn.make_ready(job)?;
            let shard = txn.shard();
            txn.tables.due.tidy(shard, &job.topic)?;
        }
    }
    Ok(true)
}

/// Failures and lost leases are counted anew; the last failed attempt stays to be seen.
fn revive(txn: &mut Txn<'_>, job: &mut Record, Token(token): Token) -> Result<bool, StoreError> {
    if job.state() != State::Dead {
        return Ok(false);
    }
    (job.token, job.failures, job.lost) = (Some(token), 0, 0);
    txn.make_ready(job)?;
    Ok(true)
}

fn purge(txn: &mut Txn<'_>, job: &Record) -> Result<bool, StoreError> {
    if job.state() != State::Dead {
        return Ok(false);
    }
    txn.purge(job)?;
    Ok(true)
}
