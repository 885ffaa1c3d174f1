//! The word to the store: outcomes of the same moment share one call per shard. A store
//! that is away is asked again until the lease has run out, and for a success a while
//! longer; a job whose lease has run out is recovered.

use std::collections::HashMap;
use std::time::Duration;

use ringback_core::outcome::Outcome;
use ringback_core::store::{Lateness, Lease, MAX_BATCH, Settled, Shard, Store, Unsettled};
use ringback_service::backoff::Backoff;
use ringback_service::{Gather, GatherOptions, Shutdown, Tasks, Turns, random};
use tokio::time::{Instant, sleep};
use tracing::{error, info, warn};

use crate::metrics::Metrics;

/// Calls under way per shard; what comes meanwhile shares the next one.
const IN_FLIGHT: usize = 1;
/// The shards take turns, since settling is in no hurry: the lanes are free by then, and
/// fewer, larger calls leave Redis more time. A slow shard holds the others up no longer.
const TURN: Duration = Duration::from_millis(5);
/// How long after its lease a success is still told.
const LATE_SUCCESS: Duration = Duration::from_secs(300);

/// The word on one lease.
pub(crate) struct Word {
    pub(crate) lease: Lease,
    pub(crate) outcome: Outcome,
    /// How late the attempt was sent.
    pub(crate) late: Duration,
}

/// Settles leases.
pub(crate) struct Settler {
    shards: HashMap<Shard, Gather<Word, Option<Settled>>>,
    metrics: Metrics,
}

impl Settler {
    pub(crate) fn start(store: &Store, metrics: &Metrics, shutdown: &Shutdown, tasks: &mut Tasks) -> Self {
        let turns = Turns::new(1, TURN);
        let start = |shard: Shard| {
            let options = GatherOptions {
                limit: MAX_BATCH,
                max_weight: usize::MAX,
                weight: |_: &Word| 1,
                in_flight: IN_FLIGHT,
                turns: Some(turns.clone()),
                capacity: MAX_BATCH,
            };
            let (store, metrics, stopping) = (store.clone(), metrics.clone(), shutdown.clone());
            let name = format!("settles of shard {}", shard.number());
            let run = move |items| settle(store.clone(), metrics.clone(), stopping.clone(), shard, items);
            (shard, Gather::start(tasks, name, shutdown, options, run))
        };
        Self { shards: store.shards().map(start).collect(), metrics: metrics.clone() }
    }

    /// Settles one lease; returns when that is done, or cannot be done any more.
    pub(crate) async fn settle(&self, word: Word) {
        let Some(gather) = self.shards.get(&word.lease.shard()) else { return };
        let job = word.lease.key.clone();
        match gather.submit(word).await {
            Ok(Some(Settled::Applied | Settled::Replayed)) => {}
            Ok(Some(Settled::Late)) => {
                self.metrics.late_settles.add(1, &[]);
                info!(job.topic = %job.topic, job.id = %job.id, "the lease had run out; the success counted all the same");
            }
            Ok(Some(Settled::Stale)) => {
                self.metrics.stale_settles.add(1, &[]);
                info!(job.topic = %job.topic, job.id = %job.id, "the lease had run out; the outcome changed nothing");
            }
            Err(closed) => {
                self.metrics.unsettled.add(1, &[]);
                error!(job.topic = %job.topic, job.id = %job.id, error = %closed, "a settle died; the job is handed over again");
            }
            Ok(None) => {
                self.metrics.unsettled.add(1, &[]);
                warn!(job.topic = %job.topic, job.id = %job.id, "not settled before the lease ran out; it is handed over again");
            }
        }
    }
}

/// Until when it is worth telling: a failure until the lease runs out, for then it changes
/// nothing; a success longer, for it still counts and saves the receiver a second call.
fn deadline(word: &Word) -> Instant {
    match word.outcome {
        Outcome::Complete => word.lease.deadline() + LATE_SUCCESS,
        Outcome::Retry { .. } | Outcome::Bury { .. } | Outcome::Release { .. } => word.lease.deadline(),
    }
}

async fn settle(
    store: Store,
    metrics: Metrics,
    shutdown: Shutdown,
    shard: Shard,
    items: Vec<Word>,
) -> Vec<Option<Settled>> {
    let count = items.len();
    metrics.settle_batch.record(count as u64, &[]);
    let give_up = items.iter().map(deadline).max();
    let mut lateness = Lateness::default();
    items.iter().for_each(|item| lateness.record(item.late));
    let mut items: Vec<_> = items.into_iter().map(|item| (item.lease, item.outcome)).collect();
    let mut backoff = Backoff::new(random::generator());
    let mut told = false;
    loop {
        match store.settle(shard, items, &lateness).await {
            Ok(settled) => return settled.into_iter().map(Some).collect(),
            Err(Unsettled { error, items: back }) => {
                if !std::mem::replace(&mut told, true) {
                    warn!(
                        shard = shard.number(),
                        jobs = count,
                        error = crate::cause(&error),
                        "not settled; trying again"
                    );
                }
                items = back;
            }
        }
        let over = give_up.is_none_or(|deadline| Instant::now() >= deadline);
        let wait = backoff.next();
        tokio::select! {
            () = sleep(wait), if !over => {}
            () = shutdown.expired(), if !over => return vec![None; count],
            else => return vec![None; count],
        }
    }
}
