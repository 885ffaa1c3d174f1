//! The edges: each checks everything it needs, and then changes it, inside the writer's
//! transaction. What they answer is the same as on every other backend.

mod attempts;
mod cancel;
mod dead;
mod expire;
mod moves;
mod outbox;
mod pause;
mod policies;
mod promote;
mod pull;
mod recover;
mod reserve;
mod revivals;
mod settle;
mod submit;

use ringback_core::contract::{Epoch, StoreError};

pub(crate) use self::attempts::{Tried, attempts, note};
pub(crate) use self::cancel::{cancel, renew};
pub(crate) use self::dead::{purge_many, revive_many};
pub(crate) use self::expire::expire;
pub(crate) use self::moves::move_job;
pub(crate) use self::outbox::{outbox, tell};
pub(crate) use self::pause::{pause, resume};
pub(crate) use self::policies::{delete_policy, put_policy};
pub(crate) use self::promote::promote;
pub(crate) use self::pull::{Grab, Said, held, pull, renew_receipt, settle_receipts};
pub(crate) use self::recover::recover;
pub(crate) use self::reserve::{Order, Taken, reserve};
pub(crate) use self::revivals::{Free, begin_revival, end_revival, keep_revival, take_revival};
pub(crate) use self::settle::{Word, settle};
pub(crate) use self::submit::{Wanted, submit};
use super::txn::Txn;

/// What a carrier brings along on each pass.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    pub(crate) epoch: Epoch,
    pub(crate) limit: usize,
    /// How long the carrier will sleep at most, in ms.
    pub(crate) floor: u64,
    /// How long dead jobs are kept, in ms.
    pub(crate) retention: u64,
}

/// What a pass has done, and how long it is until each next moment, in µs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Passed {
    pub(crate) moved: u32,
    pub(crate) other: u32,
    pub(crate) due: Option<u64>,
    pub(crate) lease: Option<u64>,
    pub(crate) dead: Option<u64>,
    pub(crate) tell: Option<u64>,
}

/// A carrier takes the shard; whoever held it is fenced.
pub(crate) fn claim(txn: &mut Txn<'_>) -> Epoch {
    txn.row.epoch = txn.now_us().max(txn.row.epoch + 1);
    Epoch(txn.row.epoch.to_string())
}

/// Whether another carrier has claimed the shard since. An epoch that was given back stays
/// the last one, as long as nobody else claims the shard.
fn is_fenced(txn: &Txn<'_>, epoch: &Epoch) -> bool {
    txn.row.epoch.to_string() != epoch.0
}

/// What the carrier needs to know before it sleeps.
fn rest(txn: &mut Txn<'_>, round: &Round, moved: u32, other: u32) -> Result<Passed, StoreError> {
    let (shard, now_us) = (txn.shard(), txn.now_us());
    // In µs, so that no part of a millisecond is slept too long.
    let wait = |at: Option<u64>, more: u64| {
        at.map(|at| at.saturating_add(more).saturating_mul(1000).saturating_sub(now_us))
    };
    let due = wait(txn.tables.due.first(shard)?, 0);
    let lease = wait(txn.tables.leases.first(shard)?, 0);
    let dead = wait(txn.tables.dead.first(shard)?, round.retention);
    // Deaths wait for no pass, so these do not count below.
    let tell = wait(txn.tables.outbox.first(shard)?, 0);
    let till = [due, lease, dead].into_iter().flatten().fold(round.floor.saturating_mul(1000), u64::min);
    txn.plan(now_us.saturating_add(till) / 1000);
    Ok(Passed { moved, other, due, lease, dead, tell })
}
