//! The task of one bulk operation: extends the claim, changes jobs in small batches, spread evenly over each second,
//! and marks the operation as finished, or releases the claim at the shutdown.

use std::sync::Arc;
use std::time::Duration;

use ringback_core::crash_point;
use ringback_core::store_types::{Bulk, StoreError, WorkerId};
use ringback_service::Shutdown;
use ringback_service::outage::Outage;
use ringback_service::telemetry::with_causes;
use ringback_store::Store;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{info, warn};

use super::rate::RateLimit;
use super::source::{Source, Step};
use crate::metrics::Metrics;

/// The most jobs of one call. The limit keeps calls short.
const BATCH: usize = 100;

/// A bulk operation that this carrier has claimed.
pub(crate) struct BulkTask {
    pub(crate) store: Store,
    pub(crate) metrics: Metrics,
    pub(crate) shutdown: Shutdown,
    /// How long the claim lasts without being extended.
    pub(crate) ttl: Duration,
    pub(crate) bulk: Bulk,
    pub(crate) worker: WorkerId,
    /// Lets one operation at a time search jobs by a filter.
    pub(crate) scans: Arc<Semaphore>,
}

impl BulkTask {
    /// Runs until the bulk operation is finished, stopped or taken over, or until the shutdown, which releases the
    /// claim. Retries after errors of the store.
    pub(crate) async fn run(self) {
        let mut source = Source::new(&self.store, self.bulk.id, self.bulk.wanted());
        let mut rate = RateLimit::new(self.bulk.rate, Instant::now());
        let mut outage = Outage::new();
        let mut extended = Instant::now();
        while !self.shutdown.is_stopping() {
            let now = Instant::now();
            let extend_at = extended + self.ttl / 3;
            let is_extension = now >= extend_at;
            let step = if is_extension {
                self.extend_claim(now, &mut extended).await
            } else {
                self.advance(&mut rate, &mut source, extend_at).await
            };
            match step {
                // A store that is full still extends claims.
                Ok(true) if is_extension => {}
                Ok(true) => {
                    outage.ends();
                }
                Ok(false) => return,
                Err(error) => {
                    if outage.begins() {
                        warn!(bulk = %self.bulk.id, error = with_causes(&error), "bulk operation failed; retrying");
                    }
                    tokio::select! {
                        biased;
                        () = sleep(outage.wait()) => {}
                        () = self.shutdown.stopping() => {}
                    }
                }
            }
        }
        // If this call fails, the claim expires.
        let release = self.store.keep_bulk(self.bulk.id, self.worker, Duration::ZERO);
        timeout(self.ttl, release).await.ok();
    }

    /// Extends the claim and sets `extended` to `now`. Returns false if the bulk operation has ended or was taken over.
    async fn extend_claim(&self, now: Instant, extended: &mut Instant) -> Result<bool, StoreError> {
        let is_ours = self.store.keep_bulk(self.bulk.id, self.worker, self.ttl).await?;
        *extended = now;
        if !is_ours {
            info!(bulk = %self.bulk.id, "bulk operation stopped, or taken over by another carrier");
        }
        Ok(is_ours)
    }

    /// Changes a batch, or sleeps until the rate allows one, at most until `latest` or the shutdown. If no jobs are
    /// left, marks the operation as finished, unless it was taken over, and returns false.
    async fn advance(
        &self,
        rate: &mut RateLimit,
        source: &mut Source,
        latest: Instant,
    ) -> Result<bool, StoreError> {
        let allowed = rate.allowed(Instant::now());
        if allowed == 0 {
            tokio::select! {
                biased;
                () = sleep_until(rate.next().min(latest)) => {}
                () = self.shutdown.stopping() => {}
            }
            return Ok(true);
        }
        match source.step(&self.store, &self.metrics, &self.scans, allowed.min(BATCH)).await? {
            Step::Changed(count) => rate.spend(count),
            Step::Empty(pause) => sleep(pause).await,
            Step::Finished => {
                let id = self.bulk.id;
                crash_point!("carrier.before_finish_bulk");
                if self.store.keep_bulk(id, self.worker, self.ttl).await? {
                    self.store.finish_bulk(id, self.worker).await?;
                    crash_point!("carrier.after_finish_bulk");
                    info!(bulk = %id, "bulk operation finished");
                }
                return Ok(false);
            }
        }
        Ok(true)
    }
}
