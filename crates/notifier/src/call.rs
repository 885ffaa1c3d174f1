//! One call to the store about a shard: it settles what waits there, reserves, or does both.

use std::sync::Arc;
use std::time::Duration;

use ringback_core::contract::{
    Lateness, Note, Noted, Reserve, Reserved, Settled, Shard, StoreError, Unsettled,
};
use ringback_core::job::JobKey;
use ringback_store::Store;
use tokio::time::timeout;
use tracing::debug;

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
    /// How long a note may hold a settle up.
    pub(crate) note_within: Duration,
}

/// What it settles, known without the leases.
pub(crate) struct Told {
    pub(crate) jobs: Vec<JobKey>,
    pub(crate) lateness: Lateness,
    /// Attempts that may not be in the log yet.
    pub(crate) notes: Vec<Note>,
    /// How many were left out, since the store is so full.
    pub(crate) unnoted: usize,
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
        let Self { shard, asking, mut batch, note_within } = self;
        let told = match &mut batch {
            Some(batch) => Some(Told::first(&store, shard, batch, note_within).await),
            None => None,
        };
        let Some(asking) = asking else {
            let Batch { items, lateness, .. } = batch.unwrap_or_default();
            let settled = store.settle(shard, items, &lateness).await;
            return Answered { shard, asked: None, told, answer: settled.map(|settled| (settled, None)) };
        };
        let Asking { cause, mut ask, caller, sequence, bits, margin } = asking;
        // Nobody needs them after the call.
        let rooms = std::mem::take(&mut ask.rooms);
        let Ask { limit, lane_limit, .. } = ask;
        let reserve =
            Reserve { caller: &caller, sequence, limit, lane_limit, lane_limits: rooms, bits, margin };
        let answer = match batch {
            Some(Batch { items, lateness, .. }) => {
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

impl Told {
    /// Notes the attempts of a batch, so that they are in the log once the outcomes are seen.
    /// What fails about that keeps nothing from being settled.
    async fn first(store: &Store, shard: Shard, batch: &mut Batch, within: Duration) -> Self {
        let jobs = batch.items.iter().map(|(lease, _)| lease.key.clone()).collect();
        let lateness = batch.lateness.clone();
        let mut told = Self { jobs, lateness, notes: std::mem::take(&mut batch.notes), unnoted: 0 };
        if told.notes.is_empty() {
            return told;
        }
        let noted = timeout(within, store.note(shard, &told.notes)).await;
        match noted {
            Ok(Ok(Noted::Kept)) => told.notes.clear(),
            Ok(Ok(Noted::Full) | Err(StoreError::Full)) => {
                told.unnoted = told.notes.len();
                told.notes.clear();
            }
            Ok(Err(error)) => {
                debug!(shard = shard.number(), error = crate::cause(&error), "attempts not noted");
            }
            Err(_elapsed) => debug!(shard = shard.number(), "attempts not noted in time"),
        }
        told
    }
}
