//! One store call for a shard: a settle, a reserve, or both in one exchange.

use std::sync::Arc;
use std::time::Duration;

use ringback_core::contract::{Reserve, Reserved, Settled, Shard, Unsettled};
use ringback_store::Store;

use crate::lanes::ReserveLimits;
use crate::settle_batch::{SettleBatch, SettleBatchMeta};
use crate::shard_signals::Cause;

/// The reserve of a call.
pub(crate) struct ReserveCall {
    pub(crate) cause: Cause,
    pub(crate) limits: ReserveLimits,
    pub(crate) caller: Arc<str>,
    pub(crate) sequence: u64,
    pub(crate) bits: [u8; 8],
    pub(crate) margin: Duration,
}

/// A call to make.
pub(crate) struct StoreCall {
    pub(crate) shard: Shard,
    pub(crate) reserve: Option<ReserveCall>,
    pub(crate) batch: Option<SettleBatch>,
    /// How long logging attempts may delay the settle.
    pub(crate) log_timeout: Duration,
}

/// The result of a call.
pub(crate) struct StoreReply {
    pub(crate) shard: Shard,
    pub(crate) reserve: Option<(Cause, ReserveLimits)>,
    pub(crate) batch: Option<SettleBatchMeta>,
    pub(crate) result: Result<(Vec<Settled>, Option<Reserved>), Unsettled>,
}

impl StoreCall {
    /// Makes the call. Attempts are logged before their outcomes are settled.
    pub(crate) async fn make(self, store: Store) -> StoreReply {
        let Self { shard, reserve, mut batch, log_timeout } = self;
        let meta = match &mut batch {
            Some(batch) => Some(batch.log_attempts(&store, shard, log_timeout).await),
            None => None,
        };
        let Some(ReserveCall { cause, mut limits, caller, sequence, bits, margin }) = reserve else {
            let SettleBatch { items, lateness, .. } = batch.unwrap_or_default();
            let settled = store.settle(shard, items, &lateness).await;
            let result = settled.map(|settled| (settled, None));
            return StoreReply { shard, reserve: None, batch: meta, result };
        };
        // Nobody needs the names after the call.
        let rooms = std::mem::take(&mut limits.lanes);
        let ReserveLimits { limit, per_lane: lane_limit, .. } = limits;
        let ask = Reserve { caller: &caller, sequence, limit, lane_limit, lane_limits: rooms, bits, margin };
        let result = match batch {
            Some(SettleBatch { items, lateness, .. }) => {
                let both = store.exchange(shard, items, &lateness, &ask).await;
                both.map(|(settled, reserved)| (settled, Some(reserved)))
            }
            None => match store.reserve(shard, &ask).await {
                Ok(reserved) => Ok((Vec::new(), Some(reserved))),
                Err(error) => Err(Unsettled { error, items: Vec::new() }),
            },
        };
        StoreReply { shard, reserve: Some((cause, limits)), batch: meta, result }
    }
}
