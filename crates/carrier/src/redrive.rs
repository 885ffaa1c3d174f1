//! Redrives: bulk moves of dead jobs back to ready, at a given rate. A carrier takes each redrive that no
//! carrier works on and extends its claim while it works. If the claim expires, another carrier goes on.

mod rate;
mod task;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rand::RngExt as _;
use ringback_core::contract::{Redrive, StoreError, TakenRedrive, WorkerId};
use ringback_service::backoff::Backoff;
use ringback_service::telemetry::with_causes;
use ringback_service::{Shutdown, random};
use ringback_store::Store;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use tracing::{debug, info};

use self::task::RedriveTask;
use crate::metrics::Metrics;
use crate::wake::DeadlineSignals;

/// Takes redrives and runs a task for each.
pub(crate) struct Redrives {
    pub(crate) store: Store,
    pub(crate) signals: Arc<DeadlineSignals>,
    pub(crate) metrics: Metrics,
    pub(crate) shutdown: Shutdown,
    /// How long a claim lasts without being extended.
    pub(crate) ttl: Duration,
}

impl Redrives {
    /// Runs until the shutdown; then the tasks release their claims.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let (mut tasks, mut backoff) = (JoinSet::new(), Backoff::new(random::generator()));
        while !self.shutdown.is_stopping() {
            let worker = WorkerId(random::generator().random());
            let next = match self.store.take_redrive(worker, self.ttl).await {
                Ok(TakenRedrive::Redrive(redrive)) => {
                    backoff.reset();
                    tasks.spawn(self.task(redrive, worker).run());
                    continue;
                }
                Ok(TakenRedrive::Later(wait)) => Some(wait.max(Duration::from_millis(1))),
                // A wake-up or the next heartbeat announces a new one.
                Ok(TakenRedrive::Nothing) => None,
                Err(error) => {
                    if !matches!(error, StoreError::Unprepared) {
                        debug!(error = with_causes(&error), "cannot take a redrive; retrying");
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

    fn task(&self, redrive: Redrive, worker: WorkerId) -> RedriveTask {
        info!(redrive = %redrive.id, topic = redrive.filter.topic.as_str(), rate = redrive.rate, "working on redrive");
        RedriveTask {
            store: self.store.clone(),
            metrics: self.metrics.clone(),
            shutdown: self.shutdown.clone(),
            ttl: self.ttl,
            redrive,
            worker,
        }
    }

    /// Waits until `until`, or earlier if the signal is set.
    async fn wait(&self, until: Option<Instant>, tasks: &mut JoinSet<()>) -> anyhow::Result<()> {
        let mut sleep = pin!(self.signals.redrives.sleep_until(until));
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
    ended.map_err(|error| anyhow::Error::new(error).context("a redrive task panicked"))
}
