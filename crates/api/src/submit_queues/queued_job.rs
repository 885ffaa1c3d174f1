//! `QueuedJob`: a job in the submit queues, submitted or imported, and the store call for jobs of its kind.

use ringback_core::job::{ImportJob, NewJob};
use ringback_core::store_types::{Shard, StoreError, Submitted};
use ringback_store::Store;

pub(crate) trait QueuedJob: Send + Sync + Sized + 'static {
    /// What its queues are called.
    const QUEUE: &'static str;

    fn job(&self) -> &NewJob;

    /// Writes jobs of one shard to the store. Returns a result for each, in order.
    fn store(
        store: &Store,
        shard: Shard,
        jobs: &[Self],
    ) -> impl Future<Output = Result<Vec<Submitted>, StoreError>> + Send;
}

impl QueuedJob for NewJob {
    const QUEUE: &'static str = "submits";

    fn job(&self) -> &NewJob {
        self
    }

    async fn store(store: &Store, shard: Shard, jobs: &[Self]) -> Result<Vec<Submitted>, StoreError> {
        store.submit(shard, jobs).await
    }
}

impl QueuedJob for ImportJob {
    const QUEUE: &'static str = "imports";

    fn job(&self) -> &NewJob {
        &self.job
    }

    async fn store(store: &Store, shard: Shard, jobs: &[Self]) -> Result<Vec<Submitted>, StoreError> {
        store.import(shard, jobs).await
    }
}
