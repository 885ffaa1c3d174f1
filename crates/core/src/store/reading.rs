//! What can be read of a store: one job, many of them page by page, counts, and whether the
//! books are right. Nothing here changes anything.

use super::{Audit, Backend, Cursor, Filter, Kept, Page, Stats, Store, StoreError};
use crate::job::{Job, JobKey, Topic};

impl Store {
    /// What is known of a job; of an ended one while it is remembered.
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn get(&self, key: &JobKey) -> Result<Option<Job>, StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.get(self.shard_of(key), key).await,
            Backend::Embedded(store) => store.get(self.shard_of(key), key).await,
        }
    }

    /// Reads on through the jobs that have not ended, from the first one without a cursor.
    /// Looks at about `look` jobs, at most [`MAX_PAGE`](super::MAX_PAGE), and answers those that are wanted.
    /// A job can be answered twice, and an empty page is not the last one while it has a
    /// next.
    ///
    /// # Errors
    /// [`StoreError::Outdated`] where the cursor means nothing (any more); any other
    /// [`StoreError`].
    pub async fn page(
        &self,
        filter: &Filter,
        from: Option<Cursor>,
        look: usize,
    ) -> Result<Page<Job>, StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.page(filter, from, look).await,
            Backend::Embedded(store) => store.page(filter, from, look).await,
        }
    }

    /// [`Store::page`] with all that is known of each job. Looks at fewer where they are
    /// large.
    ///
    /// # Errors
    /// Those of [`Store::page`].
    pub async fn page_kept(
        &self,
        filter: &Filter,
        from: Option<Cursor>,
        look: usize,
    ) -> Result<Page<Kept>, StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.page_kept(filter, from, look).await,
            Backend::Embedded(store) => store.page_kept(filter, from, look).await,
        }
    }

    /// Whether a topic has jobs that have not ended. The shards are looked at one after the
    /// other; what comes meanwhile may be met or not.
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn has_jobs(&self, topic: &Topic) -> Result<bool, StoreError> {
        Ok(self.topic(topic).await?.is_some_and(|counts| counts.jobs() > 0))
    }

    /// Counts over all shards. The shards are read one after the other, so the sums can
    /// be off by what moved meanwhile.
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn stats(&self) -> Result<Stats, StoreError> {
        let mut sum = Stats::default();
        for shard in self.shards() {
            sum.merge(match &self.backend {
                Backend::Redis(store) => store.stats(shard).await?,
                Backend::Embedded(store) => store.stats(shard).await?,
            });
        }
        Ok(sum)
    }

    /// Compares everything that is kept with everything that is counted. `None` where that
    /// is not built: on Redis. Reads the whole store, at the cost of memory in proportion.
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn audit(&self) -> Result<Option<Audit>, StoreError> {
        match &self.backend {
            Backend::Redis(_) => Ok(None),
            Backend::Embedded(store) => store.audit().await.map(Some),
        }
    }
}
