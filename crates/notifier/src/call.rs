//! One call to the store about a shard: it settles what waits there, reserves, or does both.

use std::sync::Arc;
use std::time::Duration;

use ringback_core::job::JobKey;
use ringback_core::store::{Lateness, Reserve, Reserved, Settled, Shard, Store, Unsettled};

use crate::lanes::Ask;
use crate::settler::Batch;
use crate::wanted::Cause;

/// What a call is to reserve.
pub(crate) struct Asking {
    pub(crate) cause: Cause,
    pub(crate) ask: Ask,
    pub(crate) caller: Arc<str>,
    pub(crate) sequence: u64,
    pub(crate) bits: [u8; 8],
    pub(crate) margin: Duration,
}

/// A call to be made.
pub(crate) struct Call {
    pub(crate) shard: Shard,
    pub(crate) asking: Option<Asking>,
    pub(crate) batch: Option<Batch>,
}

/// What it settles, known without the leases.
pub(crate) struct Told {
    pub(crate) jobs: Vec<JobKey>,
    pub(crate) lateness: Lateness,
}

/// A call that has ended.
pub(crate) struct Answered {
    pub(crate) shard: Shard,
    pub(crate) asked: Option<(Cause, Ask)>,
    pub(crate) told: Option<Told>,
    pub(crate) answer: Result<(Vec<Settled>, Option<Reserved>), Unsettled>,
}

impl Call {
    pub(crate) async fn make(self, store: Store) -> Answered {
        let Self { shard, asking, batch } = self;
        let told = batch.as_ref().map(|batch| Told {
            jobs: batch.items.iter().map(|(lease, _)| lease.key.clone()).collect(),
            lateness: batch.lateness.clone(),
        });
        let Some(asking) = asking else {
            let Batch { items, lateness } = batch.unwrap_or_default();
            let settled = store.settle(shard, items, &lateness).await;
            return Answered { shard, asked: None, told, answer: settled.map(|settled| (settled, None)) };
        };
        let Asking { cause, mut ask, caller, sequence, bits, margin } = asking;
        // Nobody needs them after the call.
        let rooms = std::mem::take(&mut ask.rooms);
        let Ask { limit, lane_room, .. } = ask;
        let reserve = Reserve { caller: &caller, sequence, limit, lane_room, rooms, bits, margin };
        let answer = match batch {
            Some(Batch { items, lateness }) => {
                let both = store.exchange(shard, items, &lateness, &reserve).await;
                both.map(|(settled, reserved)| (settled, Some(reserved)))
            }
            None => match store.reserve(shard, &reserve).await {
                Ok(reserved) => Ok((Vec::new(), Some(reserved))),
                Err(error) => Err(Unsettled { error, items: Vec::new() }),
            },
        };
        Answered { shard, asked: Some((cause, ask)), told, answer }
    }
}
