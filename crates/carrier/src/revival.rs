//! The work on one revival: reads its dead jobs from each shard, in order of death, and revives
//! them in small batches, evenly over each second.

mod pace;

use std::collections::VecDeque;
use std::time::Duration;

use ringback_core::contract::{
    DeadCursor, DeadFilter, MAX_DEAD, Redrive, Redriven, Shard, StoreError, WorkerId,
};
use ringback_service::backoff::Backoff;
use ringback_service::{Shutdown, random};
use ringback_store::Store;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::info;

use self::pace::Pace;
use crate::metrics::Metrics;
use crate::reviver::after;

/// At most so many jobs a call, so that none takes long.
const BATCH: usize = 100;
/// Between two looks that have found nothing, so that they do not take all the time of the store.
const BREATH: Duration = Duration::from_millis(5);

/// A revival, in the hands of a carrier.
pub(crate) struct Work {
    pub(crate) store: Store,
    pub(crate) metrics: Metrics,
    pub(crate) shutdown: Shutdown,
    /// How long it stays here without a word.
    pub(crate) ttl: Duration,
    pub(crate) revival: Redrive,
    pub(crate) holder: WorkerId,
}

/// What is left of it in a shard.
struct Source {
    shard: Shard,
    /// Found and not revived yet.
    found: VecDeque<DeadCursor>,
    /// Where to look on; `None`: there are no more.
    next: Option<Option<DeadCursor>>,
}

/// What a step came to.
enum Step {
    /// So many of what was allowed are used up.
    Revived(usize),
    /// Nothing was found yet, and there may be more.
    Looked,
    /// There are no more.
    Over,
}

impl Work {
    /// Works until it is done, stopped or another's, or the process is to end.
    pub(crate) async fn run(self) {
        let (mut sources, filter) = (self.sources(), self.revival.wanted());
        let mut pace = Pace::new(self.revival.rate, Instant::now());
        let (mut backoff, mut away) = (Backoff::new(random::generator()), false);
        let mut kept = Instant::now();
        while !self.shutdown.is_stopping() {
            let now = Instant::now();
            let step = if now >= kept + self.ttl / 3 {
                self.keep(now, &mut kept).await
            } else {
                self.turn(&mut pace, &mut sources, &filter, kept + self.ttl / 3).await
            };
            match step {
                Ok(true) => {
                    backoff.reset();
                    away = false;
                }
                Ok(false) => return,
                Err(error) => {
                    tokio::select! {
                        () = after(&error, &mut away, &mut backoff) => {}
                        () = self.shutdown.stopping() => {}
                    }
                }
            }
        }
        // Where that does not arrive it is free after its time.
        let back = self.store.keep_redrive(self.revival.id, self.holder, Duration::ZERO);
        timeout(self.ttl, back).await.ok();
    }

    fn sources(&self) -> VecDeque<Source> {
        let source = |shard| Source { shard, found: VecDeque::new(), next: Some(None) };
        self.store.shards().map(source).collect()
    }

    /// Lets the others know. False when it is over, or another's.
    async fn keep(&self, now: Instant, kept: &mut Instant) -> Result<bool, StoreError> {
        let is_here = self.store.keep_redrive(self.revival.id, self.holder, self.ttl).await?;
        *kept = now;
        if !is_here {
            info!(revival = %self.revival.id, "the revival has ended, or is another carrier's");
        }
        Ok(is_here)
    }

    /// Revives what is due by now, or sleeps until something is. False when all is done.
    async fn turn(
        &self,
        pace: &mut Pace,
        sources: &mut VecDeque<Source>,
        filter: &DeadFilter,
        latest: Instant,
    ) -> Result<bool, StoreError> {
        let allowed = pace.allowed(Instant::now());
        if allowed == 0 {
            let until = pace.next().min(latest);
            tokio::select! {
                () = sleep_until(until) => {}
                () = self.shutdown.stopping() => {}
            }
            return Ok(true);
        }
        match self.step(allowed.min(BATCH), sources, filter).await? {
            Step::Revived(count) => pace.spend(count),
            Step::Looked => sleep_until(Instant::now() + BREATH).await,
            Step::Over => {
                let id = self.revival.id;
                if self.store.keep_redrive(id, self.holder, self.ttl).await? {
                    self.store.finish_redrive(id, self.holder).await?;
                    info!(revival = %id, "the revival is done");
                }
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A batch of the shard whose turn it is.
    async fn step(
        &self,
        most: usize,
        sources: &mut VecDeque<Source>,
        filter: &DeadFilter,
    ) -> Result<Step, StoreError> {
        sources.retain(|source| source.next.is_some() || !source.found.is_empty());
        let Some(source) = sources.front_mut() else { return Ok(Step::Over) };
        if source.found.is_empty()
            && let Some(from) = source.next
        {
            let page = self.store.dead_cursors(source.shard, filter, from, MAX_DEAD).await?;
            source.next = page.next.map(Some);
            source.found.extend(page.items);
        }
        let batch: Vec<_> = source.found.iter().copied().take(most).collect();
        if batch.is_empty() {
            let has_more = source.next.is_some();
            sources.rotate_left(1);
            return Ok(if has_more { Step::Looked } else { Step::Revived(0) });
        }
        // Only what is answered for is taken off: the rest is tried again.
        match self.store.revive_many(source.shard, self.revival.id, &batch).await? {
            Redriven::Jobs(count) => {
                source.found.drain(..batch.len());
                self.metrics.revived.add(count, &[]);
                sources.rotate_left(1);
                Ok(Step::Revived(usize::try_from(count).unwrap_or(batch.len())))
            }
            Redriven::Over => {
                sources.pop_front();
                Ok(Step::Revived(0))
            }
        }
    }
}
