//! Reading many jobs page by page, from a snapshot beside the writer, in the order in which
//! they came; and taking in jobs that have something behind them.

use ringback_core::contract::{
    Cursor, Filter, MAX_PAGE, Page, Shard, StoreError, StoredJob, Submitted, payload,
};
use ringback_core::job::{ContentHash, ImportJob, Job, JobKey};
use tokio::time::timeout;

use super::edges::{self, Wanted};
use super::tables::{self, Body, Record};
use super::{EmbeddedStore, known};

/// A page is closed once its bodies have so many bytes.
const PAGE_BYTES: usize = 1024 * 1024;

impl EmbeddedStore {
    pub async fn import(&self, shard: Shard, jobs: &[ImportJob]) -> Result<Vec<Submitted>, StoreError> {
        let pack = |job: &ImportJob| {
            let wanted = Wanted::pack(shard.0, &job.job);
            job.history.iter().fold(wanted, Wanted::with)
        };
        self.take(shard, jobs.iter().map(pack).collect(), jobs.iter().map(|job| &job.job.key)).await
    }

    /// Hands packed jobs to the writer; `names` are theirs, in order.
    pub(crate) async fn take(
        &self,
        shard: Shard,
        jobs: Vec<Wanted>,
        names: impl Iterator<Item = &JobKey>,
    ) -> Result<Vec<Submitted>, StoreError> {
        let (bytes, keep) = (jobs.iter().map(Wanted::bytes).sum(), self.keep());
        let answers = self.call(shard, bytes, move |txn| edges::submit(txn, &jobs, keep)).await?;
        let submitted = answers.into_iter().zip(names);
        Ok(submitted
            .map(|((answer, record), key)| Submitted { answer, job: known(record, key.clone()) })
            .collect())
    }

    pub async fn page(
        &self,
        filter: &Filter,
        from: Option<Cursor>,
        look: usize,
    ) -> Result<Page<Job>, StoreError> {
        let page = self.read_on(filter, from, look).await?;
        let job = |(record, body)| Some(known_as(record, &body)?.0);
        Ok(Page { items: page.items.into_iter().filter_map(job).collect(), next: page.next })
    }

    pub async fn page_stored(
        &self,
        filter: &Filter,
        from: Option<Cursor>,
        look: usize,
    ) -> Result<Page<StoredJob>, StoreError> {
        let page = self.read_on(filter, from, look).await?;
        let kept = |(record, body): (Record, Body)| {
            let delivery = payload::unpack(&body.payload, record.origin.as_ref().into(), record.timeout())?;
            let (job, content) = known_as(record, &body)?;
            Some(StoredJob { job, delivery, content })
        };
        Ok(Page { items: page.items.into_iter().filter_map(kept).collect(), next: page.next })
    }

    /// Numbers outlive a restart, and are not counted by shard: a cursor is one of them.
    async fn read_on(
        &self,
        filter: &Filter,
        from: Option<Cursor>,
        look: usize,
    ) -> Result<Page<(Record, Body)>, StoreError> {
        let from = from.unwrap_or(Cursor::START);
        if (from.shard, from.life) != (0, 0) {
            return Err(StoreError::Outdated);
        }
        let writer = self.writer.get().ok_or(StoreError::Unprepared)?;
        let patience = self.options.call_timeout;
        let snapshot =
            timeout(patience, writer.snapshot()).await.map_err(|_elapsed| StoreError::Slow(patience))??;
        let (filter, look) = (filter.clone(), look.clamp(1, MAX_PAGE));
        let read = tokio::task::spawn_blocking(move || {
            let mut stretch = tables::read_on(&snapshot, from.at, look, PAGE_BYTES)?;
            stretch.found.retain(|(record, _)| wanted(&filter, record));
            Ok(Page { items: stretch.found, next: stretch.next.map(|at| Cursor { at, ..from }) })
        });
        read.await.map_err(|_| StoreError::Closed)?
    }
}

fn wanted(filter: &Filter, record: &Record) -> bool {
    filter.topic.as_ref().is_none_or(|topic| topic.as_str() == &*record.topic)
        && filter.state.is_none_or(|state| state == record.state())
}

/// None for one whose name cannot be read, which stops nobody else's.
fn known_as(record: Record, body: &Body) -> Option<(Job, ContentHash)> {
    let key = JobKey { topic: record.topic.parse().ok()?, id: body.id.parse().ok()? };
    let content = ContentHash(record.content);
    Some((known(record, key), content))
}
