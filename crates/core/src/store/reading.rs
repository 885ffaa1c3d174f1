//! What can be read of a store: one job, many of them page by page, counts, and whether the
//! books are right. Nothing here changes anything, but for an audit that repairs.

use super::{Audit, Backend, Cursor, Filter, Kept, Page, Repair, Stats, Store, StoreError};
use crate::job::{Job, JobKey};

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

    /// Whether every job is where its state would be looked for, and every count is right, shard by
    /// shard. With [`Repair::Yes`] what is lost is led to again; no job is removed. It takes a while,
    /// and may go on beside anything: what moves meanwhile is no finding. Dropping the future ends
    /// it. On Redis it takes 32 bytes of memory for each job that waits in a list, of at most half a
    /// million at a time, and on both a row for each lane and topic that has jobs or is known; a repair of
    /// the embedded store also keeps up to 10,000 findings at a time.
    ///
    /// # Errors
    /// Any [`StoreError`]; [`StoreError::Outdated`] where a Redis was restarted meanwhile.
    pub async fn audit(&self, repair: Repair) -> Result<Audit, StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.audit(repair).await,
            Backend::Embedded(store) => store.audit(repair).await,
        }
    }
}
