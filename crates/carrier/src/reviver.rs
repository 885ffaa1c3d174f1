//! Revivals that are worked on here: dead jobs of a filter made ready again, so many a second.
//! A carrier takes each that nobody works on, and lets the others know that it still does; when
//! it is not heard of any more, another one goes on.

use std::sync::Arc;
use std::time::Duration;

use rand::Rng as _;
use ringback_core::contract::{Redrive, StoreError, TakenRedrive, WorkerId};
use ringback_service::backoff::Backoff;
use ringback_service::{Shutdown, random};
use ringback_store::Store;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{info, warn};

use crate::bells::Bells;
use crate::metrics::Metrics;
use crate::revival::Work;

/// Takes revivals until the shutdown.
pub(crate) struct Reviver {
    pub(crate) store: Store,
    pub(crate) bells: Arc<Bells>,
    pub(crate) metrics: Metrics,
    pub(crate) shutdown: Shutdown,
    /// How long one stays here while this carrier is silent.
    pub(crate) ttl: Duration,
}

impl Reviver {
    /// Works on what there is; what is under way at the shutdown is given back.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let (mut works, mut backoff) = (JoinSet::new(), Backoff::new(random::generator()));
        while !self.shutdown.is_stopping() {
            let holder = holder();
            let next = match self.store.take_redrive(holder, self.ttl).await {
                Ok(TakenRedrive::Redrive(revival)) => {
                    backoff.reset();
                    works.spawn(self.work(revival, holder).run());
                    continue;
                }
                Ok(TakenRedrive::Later(wait)) => Some(wait.max(Duration::from_millis(1))),
                // It is told, or the next heartbeat knows of it.
                Ok(TakenRedrive::Nothing) => None,
                Err(error) => {
                    if !matches!(error, StoreError::Unprepared) {
                        tracing::debug!(error = crate::cause(&error), "revivals cannot be asked for");
                    }
                    Some(backoff.next())
                }
            };
            self.rest(next.map(|wait| Instant::now() + wait), &mut works).await?;
        }
        while let Some(ended) = works.join_next().await {
            died(ended)?;
        }
        Ok(())
    }

    fn work(&self, revival: Redrive, holder: WorkerId) -> Work {
        let Redrive { id, rate, .. } = &revival;
        info!(revival = %id, topic = %revival.filter.topic, rate, "revives dead jobs");
        Work {
            store: self.store.clone(),
            metrics: self.metrics.clone(),
            shutdown: self.shutdown.clone(),
            ttl: self.ttl,
            revival,
            holder,
        }
    }

    /// Until a time, unless a bell names an earlier one.
    async fn rest(&self, mut until: Option<Instant>, works: &mut JoinSet<()>) -> anyhow::Result<()> {
        loop {
            let sleep = async {
                match until {
                    Some(until) => sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = sleep => return Ok(()),
                at = self.bells.revival() => until = Some(until.map_or(at, |until| until.min(at))),
                () = self.shutdown.stopping() => return Ok(()),
                Some(ended) = works.join_next() => died(ended)?,
            }
        }
    }
}

fn holder() -> WorkerId {
    let mut random = [0; 8];
    random::generator().fill_bytes(&mut random);
    WorkerId(random)
}

fn died(ended: Result<(), tokio::task::JoinError>) -> anyhow::Result<()> {
    ended.map_err(|error| anyhow::Error::new(error).context("the work on a revival died"))
}

/// Waits a little after a call that failed; says so the first time.
pub(crate) async fn after(error: &StoreError, away: &mut bool, backoff: &mut Backoff) {
    if !std::mem::replace(away, true) {
        warn!(error = crate::cause(error), "a revival cannot go on; trying again");
    }
    sleep(backoff.next()).await;
}
