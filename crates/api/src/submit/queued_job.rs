//! `QueuedJob`: a job in the submit queues, submitted or imported, and the store call that saves jobs of
//! its kind.

use std::future::Future;

use ringback_admission::weight;
use ringback_core::contract::{Shard, StoreError, Submitted};
use ringback_core::job::{ImportJob, JobKey, NewJob};
use ringback_store::Store;

/// A job on its way to the store.
pub(crate) trait QueuedJob: Send + Sync + Sized + 'static {
    const NAME: &'static str;

    /// The job's topic and id.
    fn key(&self) -> &JobKey;

    /// About how many bytes it adds to a call.
    fn weight(&self) -> usize;

    /// Saves jobs of one shard.
    fn store(
        store: &Store,
        shard: Shard,
        jobs: &[Self],
    ) -> impl Future<Output = Result<Vec<Submitted>, StoreError>> + Send;
}

impl QueuedJob for NewJob {
    const NAME: &'static str = "submits";

    fn key(&self) -> &JobKey {
        &self.key
    }

    fn weight(&self) -> usize {
        weight(self)
    }

    async fn store(store: &Store, shard: Shard, jobs: &[Self]) -> Result<Vec<Submitted>, StoreError> {
        store.submit(shard, jobs).await
    }
}

/// The history of an imported job is small and does not count.
impl QueuedJob for ImportJob {
    const NAME: &'static str = "imports";

    fn key(&self) -> &JobKey {
        self.job.key()
    }

    fn weight(&self) -> usize {
        self.job.weight()
    }

    async fn store(store: &Store, shard: Shard, jobs: &[Self]) -> Result<Vec<Submitted>, StoreError> {
        store.import(shard, jobs).await
    }
}
