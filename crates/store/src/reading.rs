//! Reading the store: one job, pages of jobs, statistics, gauges of the shards that a carrier holds, and the
//! consistency check. Only a check that repairs and `add_lateness` change anything.

use ringback_core::job::{Job, JobKey, Topic};
use ringback_core::store_types::{
    Check, Cursor, Epoch, Filter, FoundJob, GaugesByShard, JobWait, Lateness, ListedJob, Page, Repair, Shard,
    Stats, StoreError, StoredJob,
};

use crate::backend::backend;
use crate::store::Store;

impl Store {
    /// A job; an ended one while its tombstone is kept. `None` if there is none with this key.
    pub async fn get(&self, key: &JobKey) -> Result<Option<Job>, StoreError> {
        backend!(self.get(self.shard_of(key), key).await)
    }

    /// [`Store::get`] with everything that is stored of the job.
    pub async fn get_stored(&self, key: &JobKey) -> Result<Option<FoundJob>, StoreError> {
        backend!(self.get_stored(self.shard_of(key), key).await)
    }

    /// What keeps a job from being delivered; nothing if it has ended or is not known.
    pub async fn waits(&self, key: &JobKey) -> Result<JobWait, StoreError> {
        backend!(self.waits(self.shard_of(key), key).await)
    }

    /// A page of jobs that have not ended, from the beginning without a cursor. Reads about `look` jobs, at
    /// most [`MAX_PAGE`](ringback_core::store_types::MAX_PAGE), and returns those that match. A job can be
    /// returned twice, and an empty page is not the last one if it has a next cursor.
    /// Fails with [`StoreError::Outdated`] if the cursor is not valid any more.
    pub async fn page(
        &self,
        filter: &Filter,
        from: Option<Cursor>,
        look: usize,
    ) -> Result<Page<Job>, StoreError> {
        let Page { items, next, examined } = self.page_listed(filter, from, look).await?;
        Ok(Page { items: items.into_iter().map(|listed| listed.job).collect(), next, examined })
    }

    /// [`Store::page`] with the origin that each job is delivered to.
    pub async fn page_listed(
        &self,
        filter: &Filter,
        from: Option<Cursor>,
        look: usize,
    ) -> Result<Page<ListedJob>, StoreError> {
        backend!(self.page_listed(filter, from, look).await)
    }

    /// How many jobs all pages of a filter read together if an index serves it; `None` if they read all jobs. There are
    /// indexes of dead jobs and of tags.
    pub async fn indexed_jobs(&self, filter: &Filter) -> Result<Option<u64>, StoreError> {
        backend!(self.indexed_jobs(filter).await)
    }

    /// [`Store::page`] with everything that is stored of each job. Reads fewer jobs if they are large.
    pub async fn page_stored(
        &self,
        filter: &Filter,
        from: Option<Cursor>,
        look: usize,
    ) -> Result<Page<StoredJob>, StoreError> {
        backend!(self.page_stored(filter, from, look).await)
    }

    /// Statistics of all shards. They are read one after the other, so the sums can be off by what moved
    /// meanwhile.
    pub async fn stats(&self) -> Result<Stats, StoreError> {
        let mut sum = Stats::default();
        for shard in self.shards() {
            sum.merge(backend!(self.stats(shard).await)?);
            sum.archive.add(&self.archive_status_of(shard).await?);
        }
        Ok(sum)
    }

    /// Adds to the lateness in the [statistics](Self::stats), in any one shard.
    pub async fn add_lateness(&self, shard: Shard, lateness: &Lateness) -> Result<(), StoreError> {
        backend!(self.add_lateness(shard, lateness).await)
    }

    /// The gauges of these shards, each if it is still held under this epoch, and of these topics in them.
    /// A shard that cannot be read does not affect the others on Redis. Reads counts and the heads of ready
    /// queues, in bounded calls.
    pub async fn gauges(&self, held: Vec<(Shard, Epoch)>, topics: &[Topic]) -> GaugesByShard {
        match backend!(self.gauges(&held, topics).await) {
            Ok(gauges) => gauges,
            Err(error) => held.into_iter().map(|(shard, _)| (shard, Err(error.clone()))).collect(),
        }
    }

    /// Checks shard by shard that every job is in the index of its state and that all counts are right.
    /// With [`Repair::Yes`] it restores missing entries; it never removes a job. It may run beside anything:
    /// what moves meanwhile is not a finding. Dropping the future stops it. On Redis it takes 32 bytes of
    /// memory for each job in a list, for at most half a million at a time; on both backends a row for each
    /// lane and topic that has jobs or is known. A repair of the embedded store also keeps up to 10,000
    /// findings at a time.
    /// Fails with [`StoreError::Outdated`] if Redis was restarted meanwhile.
    pub async fn check(&self, repair: Repair) -> Result<Check, StoreError> {
        backend!(self.check(repair).await)
    }
}
