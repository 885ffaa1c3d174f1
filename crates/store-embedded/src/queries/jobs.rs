//! One job by its name, and pages of jobs in the order in which they were accepted.

use ringback_core::contract::{
    Cursor, Filter, FoundJob, MAX_PAGE, Page, Shard, StoreError, StoredJob, payload,
};
use ringback_core::job::{ContentHash, Job, JobKey};

use crate::tables::{Body, Record};
use crate::{EmbeddedStore, answers};

/// A page is full once its bodies have this many bytes.
const PAGE_BYTES: usize = 1024 * 1024;

impl EmbeddedStore {
    pub async fn get(&self, shard: Shard, key: &JobKey) -> Result<Option<Job>, StoreError> {
        let (locator, keep) = (key.locator().0, self.keep_tombstones());
        let found = self.call(shard, 0, move |txn| txn.find(locator, keep)).await?;
        Ok(found.map(|record| answers::job(record, key.clone())))
    }

    /// [`Self::get`] with everything that is stored of the job.
    pub async fn get_stored(&self, shard: Shard, key: &JobKey) -> Result<Option<FoundJob>, StoreError> {
        let (locator, keep) = (key.locator().0, self.keep_tombstones());
        let found = self.call(shard, 0, move |txn| {
            let Some(record) = txn.find(locator, keep)? else { return Ok(None) };
            let body = txn.tables.records.body(record.number)?;
            Ok(Some((record, body)))
        });
        let Some((record, body)) = found.await? else { return Ok(None) };
        if record.ended().is_some() {
            return Ok(Some(FoundJob::Ended(answers::job(record, key.clone()))));
        }
        let stored = body.and_then(|body| stored(record, &body));
        let stored = stored.ok_or(StoreError::Unreadable("a job's body"))?;
        Ok(Some(FoundJob::Stored(Box::new(stored))))
    }

    pub async fn page(
        &self,
        filter: &Filter,
        from: Option<Cursor>,
        limit: usize,
    ) -> Result<Page<Job>, StoreError> {
        self.read_page(filter, from, limit, |(record, body)| {
            let (key, origin) = (answers::key(&record, &body)?, record.origin.clone());
            Some(answers::job(record, key)).filter(|job| filter.matches(job, &origin))
        })
        .await
    }

    /// A page of jobs with their deliveries and content hashes.
    pub async fn page_stored(
        &self,
        filter: &Filter,
        from: Option<Cursor>,
        limit: usize,
    ) -> Result<Page<StoredJob>, StoreError> {
        self.read_page(filter, from, limit, |(record, body)| {
            let origin = record.origin.clone();
            stored(record, &body).filter(|stored| filter.matches(&stored.job, &origin))
        })
        .await
    }

    /// Jobs for which `show` returns `None` are left out. The cursor is the number of a job: numbers
    /// outlive a restart, and are counted over all shards.
    async fn read_page<T>(
        &self,
        filter: &Filter,
        from: Option<Cursor>,
        limit: usize,
        show: impl Fn((Record, Body)) -> Option<T>,
    ) -> Result<Page<T>, StoreError> {
        let from = from.unwrap_or(Cursor::START);
        if (from.shard, from.life) != (0, 0) {
            return Err(StoreError::Outdated);
        }
        let (filter, limit) = (filter.clone(), limit.clamp(1, MAX_PAGE));
        let (mut found, next) = self
            .read(self.snapshot().await?, move |tables| tables.records.page(from.at, limit, PAGE_BYTES))
            .await?;
        let examined = found.len();
        // What can be judged without the body.
        found.retain(|(record, _)| {
            filter.topic.as_ref().is_none_or(|topic| topic.as_str() == &*record.topic)
                && filter.state.is_none_or(|state| state == record.state())
        });
        let items = found.into_iter().filter_map(show).collect();
        Ok(Page { items, next: next.map(|at| Cursor { at, ..from }), examined })
    }
}

/// Everything that is stored of a job; `None` if it cannot be read.
fn stored(record: Record, body: &Body) -> Option<StoredJob> {
    let delivery =
        payload::unpack(&body.payload, record.origin.as_ref().into(), record.timeout(), record.tags.clone())?;
    let (key, content) = (answers::key(&record, body)?, ContentHash(record.content));
    Some(StoredJob { job: answers::job(record, key), delivery, content })
}
