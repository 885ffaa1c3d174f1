//! `StoreCall`: makes one store call for a shard: a settle of a batch of outcomes, a reserve, or both in one exchange.
//! Writes the attempts of the batch to the attempt log before.

use std::sync::Arc;
use std::time::Duration;

use ringback_core::crash_point;
use ringback_core::job::JobKey;
use ringback_core::outcome::Outcome;
use ringback_core::store_types::{
    AttemptLogEntry, Lease, LogResult, Reserve, Reserved, SettleResult, Shard, StoreError, Unsettled, Waiting,
};
use ringback_store::Store;

use crate::lanes::ReserveLimits;
use crate::shard_signals::Cause;

pub(crate) struct ReserveCall {
    pub(crate) cause: Cause,
    pub(crate) limits: ReserveLimits,
    /// The limited lanes that it has places for, and how many.
    pub(crate) admitted: Vec<(String, usize)>,
    pub(crate) caller: Arc<str>,
    pub(crate) sequence: u64,
    pub(crate) bits: [u8; 8],
    pub(crate) waiting: Waiting,
    pub(crate) margin: Duration,
}

/// A call to make.
pub(crate) struct StoreCall {
    pub(crate) shard: Shard,
    pub(crate) reserve: Option<ReserveCall>,
    pub(crate) batch: Option<SettleBatch>,
}

/// A reserve that was made.
pub(crate) struct MadeReserve {
    pub(crate) cause: Cause,
    pub(crate) limits: ReserveLimits,
    pub(crate) admitted: Vec<(String, usize)>,
}

/// The result of a call.
pub(crate) struct StoreReply {
    pub(crate) shard: Shard,
    pub(crate) reserve: Option<MadeReserve>,
    pub(crate) batch: Option<SentBatch>,
    pub(crate) result: Result<(Vec<SettleResult>, Option<Reserved>), Unsettled>,
}

impl StoreCall {
    /// Makes the call, after it has written the attempts of the batch to the attempt log. If that fails, the outcomes
    /// are settled all the same.
    pub(crate) async fn make(self, store: Store) -> StoreReply {
        let Self { shard, reserve, mut batch } = self;
        let mut meta = None;
        if let Some(SettleBatch { items, notes }) = &mut batch {
            let jobs = items.iter().map(|(lease, _)| lease.key.clone()).collect();
            let meta = meta.insert(SentBatch { jobs, notes: std::mem::take(notes), unlogged: 0 });
            // The log has them when the outcomes become visible. A failure does not prevent the settle.
            match store.log_attempts(shard, &meta.notes).await {
                Some(LogResult::Kept) => meta.notes.clear(),
                Some(LogResult::Full) => meta.unlogged = std::mem::take(&mut meta.notes).len(),
                None => {}
            }
            crash_point!("notifier.before_settle");
        }
        let Some(ReserveCall { cause, mut limits, admitted, caller, sequence, bits, waiting, margin }) =
            reserve
        else {
            let SettleBatch { items, .. } = batch.unwrap_or_default();
            let settled = store.settle(shard, items).await;
            let result = settled.map(|settled| (settled, None));
            return StoreReply { shard, reserve: None, batch: meta, result };
        };
        // Nobody needs the names after the call.
        let lane_limits = std::mem::take(&mut limits.lanes);
        let group_limits = std::mem::take(&mut limits.groups);
        let ReserveLimits {
            limit,
            per_lane: lane_limit,
            per_origin: origin_limit,
            per_tenant: tenant_limit,
            ..
        } = limits;
        let caller = &caller;
        let ask = Reserve {
            caller,
            sequence,
            limit,
            lane_limit,
            lane_limits,
            admitted: admitted.clone(),
            origin_limit,
            tenant_limit,
            group_limits,
            bits,
            waiting,
            margin,
        };
        let result = match batch {
            Some(SettleBatch { items, .. }) => {
                let both = store.exchange(shard, items, &ask).await;
                both.map(|(settled, reserved)| (settled, Some(reserved)))
            }
            None => match store.reserve(shard, &ask).await {
                Ok(reserved) => Ok((Vec::new(), Some(reserved))),
                Err(error) => Err(Unsettled { error, items: Vec::new() }),
            },
        };
        StoreReply { shard, reserve: Some(MadeReserve { cause, limits, admitted }), batch: meta, result }
    }
}

/// Says that a notifier no longer waits for due jobs of a shard, so that carriers do not leave them to it: a reserve of no
/// jobs.
pub(crate) async fn stop_waiting(store: &Store, shard: Shard, caller: &str) -> Result<Reserved, StoreError> {
    let ask = Reserve {
        caller,
        // Only a reserve that gets jobs is remembered by its number.
        sequence: 0,
        limit: 0,
        lane_limit: 0,
        lane_limits: Vec::new(),
        admitted: Vec::new(),
        origin_limit: 0,
        tenant_limit: 0,
        group_limits: Vec::new(),
        bits: [0; 8],
        waiting: Waiting::NoLonger,
        margin: Duration::ZERO,
    };
    store.reserve(shard, &ask).await
}

/// The outcome of one attempt, to be settled.
pub(crate) struct Settlement {
    pub(crate) lease: Lease,
    pub(crate) outcome: Outcome,
    /// The entry for the attempt log, if the attempt is logged.
    pub(crate) note: Option<Box<AttemptLogEntry>>,
}

/// The outcomes of one shard that one call settles.
#[derive(Default)]
pub(crate) struct SettleBatch {
    pub(crate) items: Vec<(Lease, Outcome)>,
    /// Entries for the attempt log, written before the settle.
    pub(crate) notes: Vec<AttemptLogEntry>,
}

/// The part of a batch that stays here while the call owns the leases.
pub(crate) struct SentBatch {
    pub(crate) jobs: Vec<JobKey>,
    /// Attempts that may not be logged yet.
    pub(crate) notes: Vec<AttemptLogEntry>,
    /// The number of attempts that were not logged because the store is nearly full.
    pub(crate) unlogged: usize,
}

impl FromIterator<Settlement> for SettleBatch {
    fn from_iter<I: IntoIterator<Item = Settlement>>(settlements: I) -> Self {
        let mut batch = Self::default();
        for Settlement { lease, outcome, note } in settlements {
            batch.items.push((lease, outcome));
            batch.notes.extend(note.map(|note| *note));
        }
        batch
    }
}
