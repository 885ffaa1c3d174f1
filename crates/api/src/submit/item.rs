//! What goes through the lines: jobs as submitted, and jobs as imported.

use std::future::Future;

use ringback_core::contract::{Shard, StoreError, Submitted};
use ringback_core::job::{ImportJob, JobKey, NewJob};
use ringback_core::limits::{MAX_BATCH, MAX_BATCH_BYTES};
use ringback_store::Store;

/// What a job weighs at least, so that a full weight is also at most [`MAX_BATCH`] jobs.
const LEAST_WEIGHT: usize = MAX_BATCH_BYTES / MAX_BATCH;

/// A job on its way to the store.
pub(crate) trait Item: Send + Sync + Sized + 'static {
    /// What a line of them is called.
    const NAME: &'static str;

    /// The job's name.
    fn key(&self) -> &JobKey;

    /// About how many bytes it brings to a call.
    fn weight(&self) -> usize;

    /// The call that carries them, all of one shard.
    fn carry(
        store: &Store,
        shard: Shard,
        jobs: &[Self],
    ) -> impl Future<Output = Result<Vec<Submitted>, StoreError>> + Send;
}

impl Item for NewJob {
    const NAME: &'static str = "submits";

    fn key(&self) -> &JobKey {
        &self.key
    }

    fn weight(&self) -> usize {
        let entries = |list: &[(String, String)]| list.iter().map(|(k, v)| k.len() + v.len()).sum::<usize>();
        let delivery = &self.delivery;
        let bytes = delivery.body.bytes.len()
            + delivery.callback.origin().len()
            + delivery.callback.path().len()
            + entries(delivery.headers.entries())
            + entries(delivery.context.entries());
        bytes.max(LEAST_WEIGHT)
    }

    async fn carry(store: &Store, shard: Shard, jobs: &[Self]) -> Result<Vec<Submitted>, StoreError> {
        store.submit(shard, jobs).await
    }
}

/// What a job has behind it is small and does not count.
impl Item for ImportJob {
    const NAME: &'static str = "imports";

    fn key(&self) -> &JobKey {
        self.job.key()
    }

    fn weight(&self) -> usize {
        self.job.weight()
    }

    async fn carry(store: &Store, shard: Shard, jobs: &[Self]) -> Result<Vec<Submitted>, StoreError> {
        store.import(shard, jobs).await
    }
}
