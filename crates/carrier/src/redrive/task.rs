//! The task of one redrive: reads dead jobs from each shard in order of death and makes them ready in
//! small batches, spread evenly over each second.

use std::collections::VecDeque;
use std::time::Duration;

use ringback_core::contract::{
    DeadCursor, DeadFilter, MAX_DEAD, Redrive, Redriven, Shard, StoreError, WorkerId,
};
use ringback_core::crash_point;
use ringback_service::Shutdown;
use ringback_service::backoff::Outage;
use ringback_service::telemetry::with_causes;
use ringback_store::Store;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{info, warn};

use super::rate::RateLimit;
use crate::metrics::Metrics;

/// The most jobs of one call, so that no call takes long.
const BATCH: usize = 100;
/// The pause after a page without matching jobs, so that a long search does not occupy the store.
const EMPTY_PAUSE: Duration = Duration::from_millis(5);

/// A redrive that this carrier has claimed.
pub(crate) struct RedriveTask {
    pub(crate) store: Store,
    pub(crate) metrics: Metrics,
    pub(crate) shutdown: Shutdown,
    /// How long the claim lasts without being extended.
    pub(crate) ttl: Duration,
    pub(crate) redrive: Redrive,
    pub(crate) worker: WorkerId,
}

/// The position of the redrive in a shard.
struct ShardCursor {
    shard: Shard,
    /// Jobs found and not redriven yet.
    found: VecDeque<DeadCursor>,
    /// Where the next page begins; `None` after the last page.
    next: Option<Option<DeadCursor>>,
}

/// The result of a batch.
enum Step {
    /// The number of jobs that were redriven.
    Redriven(usize),
    /// A page without matching jobs; there may be more pages.
    Empty,
    /// No jobs are left in any shard.
    Finished,
}

impl RedriveTask {
    /// Runs until the redrive is finished, stopped or taken over, or until the shutdown.
    pub(crate) async fn run(self) {
        let (mut cursors, filter) = (self.cursors(), self.redrive.wanted());
        let mut rate = RateLimit::new(self.redrive.rate, Instant::now());
        let mut outage = Outage::new();
        let mut extended = Instant::now();
        while !self.shutdown.is_stopping() {
            let now = Instant::now();
            let extend_at = extended + self.ttl / 3;
            let is_extension = now >= extend_at;
            let step = if is_extension {
                self.extend_claim(now, &mut extended).await
            } else {
                self.advance(&mut rate, &mut cursors, &filter, extend_at).await
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
                        warn!(redrive = %self.redrive.id, error = with_causes(&error), "redrive failed; retrying");
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
        let release = self.store.keep_redrive(self.redrive.id, self.worker, Duration::ZERO);
        timeout(self.ttl, release).await.ok();
    }

    fn cursors(&self) -> VecDeque<ShardCursor> {
        let cursor = |shard| ShardCursor { shard, found: VecDeque::new(), next: Some(None) };
        self.store.shards().map(cursor).collect()
    }

    /// Extends the claim. Returns false if the redrive has ended or was taken over.
    async fn extend_claim(&self, now: Instant, extended: &mut Instant) -> Result<bool, StoreError> {
        let is_ours = self.store.keep_redrive(self.redrive.id, self.worker, self.ttl).await?;
        *extended = now;
        if !is_ours {
            info!(redrive = %self.redrive.id, "redrive stopped, or taken over by another carrier");
        }
        Ok(is_ours)
    }

    /// Redrives a batch, or sleeps until the rate allows one, at most until `latest`. Returns false
    /// when the redrive is finished.
    async fn advance(
        &self,
        rate: &mut RateLimit,
        cursors: &mut VecDeque<ShardCursor>,
        filter: &DeadFilter,
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
        match self.step(allowed.min(BATCH), cursors, filter).await? {
            Step::Redriven(count) => rate.spend(count),
            Step::Empty => sleep(EMPTY_PAUSE).await,
            Step::Finished => {
                let id = self.redrive.id;
                crash_point!("carrier.before_finish_redrive");
                if self.store.keep_redrive(id, self.worker, self.ttl).await? {
                    self.store.finish_redrive(id, self.worker).await?;
                    crash_point!("carrier.after_finish_redrive");
                    info!(redrive = %id, "redrive finished");
                }
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Redrives at most `limit` jobs of the next shard.
    async fn step(
        &self,
        limit: usize,
        cursors: &mut VecDeque<ShardCursor>,
        filter: &DeadFilter,
    ) -> Result<Step, StoreError> {
        cursors.retain(|cursor| cursor.next.is_some() || !cursor.found.is_empty());
        let Some(cursor) = cursors.front_mut() else { return Ok(Step::Finished) };
        if cursor.found.is_empty()
            && let Some(from) = cursor.next
        {
            let page = self.store.dead_cursors(cursor.shard, filter, from, MAX_DEAD).await?;
            crash_point!("carrier.after_page_of_dead");
            cursor.next = page.next.map(Some);
            cursor.found.extend(page.items);
        }
        let batch: Vec<_> = cursor.found.iter().copied().take(limit).collect();
        if batch.is_empty() {
            let has_more = cursor.next.is_some();
            cursors.rotate_left(1);
            return Ok(if has_more { Step::Empty } else { Step::Redriven(0) });
        }
        // Jobs are dropped from the cursor only after the answer, so an error repeats them.
        let redriven = self.store.revive_many(cursor.shard, self.redrive.id, &batch).await?;
        crash_point!("carrier.after_redrive_batch");
        match redriven {
            Redriven::Jobs(count) => {
                cursor.found.drain(..batch.len());
                self.metrics.redriven.add(count, &[]);
                cursors.rotate_left(1);
                Ok(Step::Redriven(usize::try_from(count).unwrap_or(batch.len())))
            }
            Redriven::Over => {
                cursors.pop_front();
                Ok(Step::Redriven(0))
            }
        }
    }
}
