//! The jobs of a bulk operation: finds them page by page and changes them in small batches. Dead jobs of a topic are
//! read from each shard in order of death; jobs of a filter by an index that serves it, else by a scan of all jobs.

use std::collections::VecDeque;
use std::time::Duration;

use opentelemetry::KeyValue;
use ringback_core::crash_point;
use ringback_core::job::JobKey;
use ringback_core::store_types::{
    BulkAction, BulkId, BulkStep, BulkTarget, BulkVerb, Cursor, DeadCursor, DeadFilter, Filter, MAX_DEAD,
    Shard, StoreError,
};
use ringback_store::Store;
use tokio::sync::Semaphore;
use tokio::time::sleep;

use crate::metrics::Metrics;

/// How many jobs one page of a scan examines. Pages are small, so that the store can answer others between two of them.
const LOOK: usize = 200;
/// The pause after such a page.
const PAUSE_OF_SCAN: Duration = Duration::from_millis(1);
/// The pause after a page of dead jobs, which examines more jobs.
const PAUSE_OF_DEAD: Duration = Duration::from_millis(5);

/// The result of a batch.
pub(super) enum Step {
    /// The number of jobs that were changed.
    Changed(usize),
    /// A page without matching jobs; more may follow, after a pause that keeps a long search from occupying the store.
    Empty(Duration),
    /// No jobs are left, or the operation has ended.
    Finished,
}

/// Where the jobs of a bulk operation come from.
pub(super) enum Source {
    Dead(DeadJobs),
    Filtered(Box<FilteredJobs>),
}

impl Source {
    pub(super) fn new(store: &Store, id: BulkId, target: BulkTarget) -> Self {
        match target {
            BulkTarget::Dead(filter) => {
                let cursor = |shard| ShardCursor { shard, found: VecDeque::new(), next: Some(None) };
                Self::Dead(DeadJobs { id, filter, cursors: store.shards().map(cursor).collect() })
            }
            BulkTarget::Jobs(filter, action) => Self::Filtered(Box::new(FilteredJobs {
                id,
                filter: *filter,
                action,
                found: VecDeque::new(),
                next: Some(None),
            })),
        }
    }

    /// Changes at most `limit` jobs of one shard. Reads a page of jobs first if none are left of the last page. After
    /// an error the next call tries the same jobs again.
    pub(super) async fn step(
        &mut self,
        store: &Store,
        metrics: &Metrics,
        scans: &Semaphore,
        limit: usize,
    ) -> Result<Step, StoreError> {
        match self {
            Self::Dead(jobs) => jobs.step(store, metrics, limit).await,
            Self::Filtered(jobs) => jobs.step(store, metrics, scans, limit).await,
        }
    }
}

/// Dead jobs of a topic, to be revived.
pub(super) struct DeadJobs {
    id: BulkId,
    filter: DeadFilter,
    /// The shards that have jobs left, the next one first.
    cursors: VecDeque<ShardCursor>,
}

/// The position in a shard.
struct ShardCursor {
    shard: Shard,
    /// Jobs found and not revived yet.
    found: VecDeque<DeadCursor>,
    /// Where the next page begins; `None` after the last page.
    next: Option<Option<DeadCursor>>,
}

impl DeadJobs {
    /// Revives at most `limit` jobs of the next shard. The shards take turns.
    async fn step(&mut self, store: &Store, metrics: &Metrics, limit: usize) -> Result<Step, StoreError> {
        self.cursors.retain(|cursor| cursor.next.is_some() || !cursor.found.is_empty());
        let Some(cursor) = self.cursors.front_mut() else { return Ok(Step::Finished) };
        if cursor.found.is_empty()
            && let Some(from) = cursor.next
        {
            let page = store.dead_cursors(cursor.shard, &self.filter, from, MAX_DEAD).await?;
            crash_point!("carrier.after_page_of_dead");
            cursor.next = page.next.map(Some);
            cursor.found.extend(page.items);
        }
        let batch: Vec<_> = cursor.found.iter().copied().take(limit).collect();
        if batch.is_empty() {
            let has_more = cursor.next.is_some();
            self.cursors.rotate_left(1);
            return Ok(if has_more { Step::Empty(PAUSE_OF_DEAD) } else { Step::Changed(0) });
        }
        // Jobs are dropped from the cursor only after the answer, so an error repeats them.
        let revived = store.revive_many(cursor.shard, self.id, &batch).await?;
        crash_point!("carrier.after_bulk_batch");
        cursor.found.drain(..batch.len());
        match revived {
            BulkStep::Jobs(count) => {
                metrics.changed.add(count, &[KeyValue::new("action", <&str>::from(BulkVerb::Revive))]);
                self.cursors.rotate_left(1);
                Ok(Step::Changed(usize::try_from(count).unwrap_or(batch.len())))
            }
            BulkStep::Over => Ok(Step::Finished),
        }
    }
}

/// The jobs that match a filter.
pub(super) struct FilteredJobs {
    id: BulkId,
    filter: Filter,
    action: BulkAction,
    /// Jobs found and not changed yet, those of a shard together.
    found: VecDeque<(Shard, Vec<JobKey>)>,
    /// Where the next page begins; `None` after the last page.
    next: Option<Option<Cursor>>,
}

impl FilteredJobs {
    /// Changes at most `limit` jobs of one shard. Before it reads a page, it waits for the semaphore `scans`.
    async fn step(
        &mut self,
        store: &Store,
        metrics: &Metrics,
        scans: &Semaphore,
        limit: usize,
    ) -> Result<Step, StoreError> {
        if self.found.is_empty() {
            let Some(from) = self.next else { return Ok(Step::Finished) };
            // One operation at a time searches the store.
            let _turn = scans.acquire().await.ok();
            self.read_page(store, from).await?;
            sleep(PAUSE_OF_SCAN).await;
        }
        let Some((shard, keys)) = self.found.front_mut() else { return Ok(Step::Empty(Duration::ZERO)) };
        let batch = &keys[keys.len().saturating_sub(limit)..];
        // Jobs are dropped only after the answer, so an error repeats them.
        let changed = store.change_many(*shard, self.id, &self.filter, self.action, batch).await?;
        crash_point!("carrier.after_filtered_batch");
        let left = keys.len() - batch.len();
        keys.truncate(left);
        if keys.is_empty() {
            self.found.pop_front();
        }
        match changed {
            BulkStep::Jobs(count) => {
                metrics.changed.add(count, &[KeyValue::new("action", <&str>::from(self.action))]);
                Ok(Step::Changed(usize::try_from(count).unwrap_or(limit)))
            }
            BulkStep::Over => Ok(Step::Finished),
        }
    }

    async fn read_page(&mut self, store: &Store, from: Option<Cursor>) -> Result<(), StoreError> {
        let page = match store.page(&self.filter, from, LOOK).await {
            // The server was restarted, so the search begins again. Jobs that were changed no longer match, or the
            // store recognizes this operation in them.
            Err(StoreError::Outdated) if from.is_some() => {
                self.next = Some(None);
                return Ok(());
            }
            page => page?,
        };
        crash_point!("carrier.after_page_of_jobs");
        self.next = page.next.map(Some);
        let mut of_shards: Vec<(Shard, Vec<JobKey>)> = Vec::new();
        for job in page.items {
            let shard = store.shard_of(&job.key);
            match of_shards.iter_mut().find(|(known, _)| *known == shard) {
                Some((_, keys)) => keys.push(job.key),
                None => of_shards.push((shard, vec![job.key])),
            }
        }
        self.found = of_shards.into();
        Ok(())
    }
}
