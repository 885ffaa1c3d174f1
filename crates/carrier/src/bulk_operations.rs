//! Bulk operations: changes of many jobs at a given rate. This loop claims each bulk operation that no carrier works on
//! and runs a task for it. If the claim of a carrier expires, another carrier claims the operation and goes on.

mod rate;
mod source;
mod task;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rand::RngExt as _;
use ringback_core::backoff::Backoff;
use ringback_core::store_types::{Bulk, StoreError, TakenBulk, WorkerId};
use ringback_service::telemetry::with_causes;
use ringback_service::{Shutdown, random};
use ringback_store::Store;
use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use tracing::{debug, info, warn};

use self::task::BulkTask;
use crate::deadline_signal::DeadlineSignals;
use crate::metrics::Metrics;

/// Claims bulk operations and runs a task for each.
pub(crate) struct Bulks {
    pub(crate) store: Store,
    pub(crate) signals: Arc<DeadlineSignals>,
    pub(crate) metrics: Metrics,
    pub(crate) shutdown: Shutdown,
    /// How long a claim lasts without being extended.
    pub(crate) ttl: Duration,
    /// Lets one operation at a time search jobs by a filter.
    pub(crate) scans: Arc<Semaphore>,
}

impl Bulks {
    /// Runs until the shutdown, then waits for the tasks, which release their claims. Fails if a task panics.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let (mut tasks, mut backoff) = (JoinSet::new(), Backoff::new(random::generator()));
        while !self.shutdown.is_stopping() {
            let worker = WorkerId(random::generator().random());
            let next = match self.store.take_bulk(worker, self.ttl).await {
                Ok(TakenBulk::Bulk(bulk)) => {
                    backoff.reset();
                    tasks.spawn(self.task(bulk, worker).run());
                    continue;
                }
                Ok(TakenBulk::Later(wait)) => Some(wait.max(Duration::from_millis(1))),
                // A wake-up or the next heartbeat announces the next bulk operation.
                Ok(TakenBulk::Nothing) => None,
                Err(error) => {
                    match &error {
                        StoreError::Unprepared => {}
                        StoreError::Unreadable(_) => {
                            warn!(error = with_causes(&error), "a bulk operation cannot be read; retrying");
                        }
                        _ => debug!(error = with_causes(&error), "cannot take a bulk operation; retrying"),
                    }
                    Some(backoff.next())
                }
            };
            self.wait(next.map(|wait| Instant::now() + wait), &mut tasks).await?;
        }
        while let Some(ended) = tasks.join_next().await {
            check(ended)?;
        }
        Ok(())
    }

    fn task(&self, bulk: Bulk, worker: WorkerId) -> BulkTask {
        info!(bulk = %bulk.id, work = ?bulk.target, rate = bulk.rate, "working on bulk operation");
        BulkTask {
            store: self.store.clone(),
            metrics: self.metrics.clone(),
            shutdown: self.shutdown.clone(),
            ttl: self.ttl,
            bulk,
            worker,
            scans: Arc::clone(&self.scans),
        }
    }

    /// Waits until `until`, the signal's deadline or the shutdown, whichever is first. Fails if a task panics.
    async fn wait(&self, until: Option<Instant>, tasks: &mut JoinSet<()>) -> anyhow::Result<()> {
        let mut sleep = pin!(self.signals.bulks.sleep_until(until));
        loop {
            tokio::select! {
                biased;
                () = &mut sleep => return Ok(()),
                () = self.shutdown.stopping() => return Ok(()),
                Some(ended) = tasks.join_next() => check(ended)?,
            }
        }
    }
}

fn check(ended: Result<(), JoinError>) -> anyhow::Result<()> {
    ended.map_err(|error| anyhow::Error::new(error).context("the task of a bulk operation panicked"))
}
