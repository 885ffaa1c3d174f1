//! recover: reserved and past its deadline → ready again at once; dead by `lost` after too
//! many in a row; cancelled where that was asked for. Jobs for pull stay, and are answered
//! again a second later if nobody settles them.

use ringback_core::contract::{AttemptOutcome, StoreError};
use ringback_core::limits::MAX_LOST;

use super::settle::LOST;
use super::{Passed, Round, is_fenced, rest};
use crate::tables::{Body, Queue, Record, Stage};
use crate::txn::{End, Keep, To, Txn};

/// When leases for pull that have run out are looked at again, in case nobody settles them, in ms.
const SOON: u64 = 1000;

/// Jobs for pull whose leases have run out.
pub(crate) type Lapsed = Vec<(Record, Body)>;

/// None when the carrier is fenced.
pub(crate) fn recover(
    txn: &mut Txn<'_>,
    round: &Round,
    keep: Keep,
) -> Result<Option<(Passed, Lapsed)>, StoreError> {
    if is_fenced(txn, &round.epoch) {
        return Ok(None);
    }
    let (shard, now) = (txn.shard(), txn.now());
    let (mut recovered, mut lost, mut lapsed) = (0, 0, Vec::new());
    for (at, number) in txn.tables.leases.until(shard, now, round.limit)? {
        let Some(mut job) = txn.tables.records.get(number)? else {
            txn.tables.leases.remove(shard, at, number)?;
            continue;
        };
        let Stage::Reserved { cancel, .. } = job.stage else {
            txn.tables.leases.remove(shard, at, number)?;
            continue;
        };
        if job.is_pull() && !cancel {
            txn.put_off(&mut job, now + SOON)?;
            lapsed.extend(txn.tables.records.body(number)?.map(|body| (job, body)));
            continue;
        }
        job.lost += 1;
        txn.tell_attempt(&job, AttemptOutcome::Lost, None)?;
        if cancel {
            let settled = job.settled;
            txn.finish(job, End::Cancelled, settled)?;
        } else if job.lost >= MAX_LOST {
            txn.die(&mut job, LOST.into())?;
            lost += 1;
        } else {
            txn.enter(&mut job, To::Ready(Queue::Front))?;
            recovered += 1;
        }
    }
    txn.trim(keep)?;
    rest(txn, round, recovered, lost).map(|passed| Some((passed, lapsed)))
}
