//! One job by its key, what it waits for, and pages of jobs that match a filter. Jobs with a tag and dead jobs are read
//! by an index, the dead ones shard by shard in the order of their death; all others in the order of their numbers.

use redb::ReadTransaction;
use ringback_core::job::{ContentHash, Job, JobKey};
use ringback_core::state::State;
use ringback_core::store_types::{
    Cursor, Filter, FilterIndex, FoundJob, JobPauses, JobWait, ListedJob, MAX_BEFORE, MAX_PAGE, Page, Shard,
    StoreError, StoredJob, payload,
};

use crate::error::Result;
use crate::tables::{self, Body, Record, Records, Stage, Tables, TenantTag};
use crate::txn::Txn;
use crate::{EmbeddedStore, answers};

/// A page is full once its bodies have this many bytes.
const PAGE_BYTES: usize = 1024 * 1024;

impl EmbeddedStore {
    pub async fn get(&self, shard: Shard, key: &JobKey) -> Result<Option<Job>, StoreError> {
        let (locator, keep) = (key.locator().0, self.keep_tombstones());
        let found = self.call(shard, 0, move |txn| txn.find(locator, keep)).await?;
        Ok(found.map(|record| answers::job(record, key.clone())))
    }

    /// Returns a job with everything that is stored of it; an ended one without its delivery. `None` if the job is
    /// unknown. Fails if the body cannot be read.
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

    /// Returns what keeps a job from being delivered now: the pauses of a job that is delayed or ready, and for a ready
    /// one also the limits of its lane and how many jobs come before it. Nothing for any other job, or an unknown one.
    pub async fn waits(&self, shard: Shard, key: &JobKey) -> Result<JobWait, StoreError> {
        let (locator, keep) = (key.locator().0, self.keep_tombstones());
        self.call(shard, 0, move |txn| match txn.find(locator, keep)? {
            Some(record) => wait(txn, &record),
            None => Ok(JobWait::default()),
        })
        .await
    }

    pub async fn page_listed(
        &self,
        filter: &Filter,
        from: Option<Cursor>,
        limit: usize,
    ) -> Result<Page<ListedJob>, StoreError> {
        self.read_page(filter, from, limit, |(record, body)| {
            let (key, origin) = (answers::key(&record, &body)?, record.origin.clone());
            let job = answers::job(record, key);
            Some(ListedJob { job, origin }).filter(|listed| filter.matches(&listed.job, &listed.origin))
        })
        .await
    }

    /// Returns a page of jobs with their deliveries and content hashes.
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

    /// Returns how many jobs the pages of a filter read in all; `None` if no index serves the filter.
    pub async fn indexed_jobs(&self, filter: &Filter) -> Result<Option<u64>, StoreError> {
        let tag = match filter.index() {
            Some(FilterIndex::Tag(tenant, tag)) => TenantTag::new(tenant, tag),
            Some(FilterIndex::Dead) => {
                return self.read(self.snapshot().await?, |tables| tables.dead.len().map(Some)).await;
            }
            None => return Ok(None),
        };
        self.read(self.snapshot().await?, move |tables| {
            tables.tagged.range(&tag, 0)?.try_fold(0, |count, of| of.map(|_| count + 1)).map(Some)
        })
        .await
    }

    /// Reads a page of at most `limit` jobs, by the index of tags or of dead jobs if one serves the filter, and leaves
    /// out those that do not match or for which `show` returns `None`. For dead jobs the cursor has a shard; otherwise
    /// it is the number of a job. Fails with `Outdated` at a cursor of the wrong kind.
    async fn read_page<T>(
        &self,
        filter: &Filter,
        from: Option<Cursor>,
        limit: usize,
        show: impl Fn((Record, Body)) -> Option<T>,
    ) -> Result<Page<T>, StoreError> {
        let from = from.unwrap_or(Cursor::START);
        let (filter, limit) = (filter.clone(), limit.clamp(1, MAX_PAGE));
        let index = filter.index();
        if index != Some(FilterIndex::Dead) && (from.shard, from.run) != (0, 0) {
            return Err(StoreError::Outdated);
        }
        let (mut found, next) = match index {
            Some(FilterIndex::Dead) => self.page_of_dead(from, limit).await?,
            Some(FilterIndex::Tag(tenant, tag)) => {
                self.page_of_tag(TenantTag::new(tenant, tag), from, limit).await?
            }
            None => {
                let read = move |tables: &Tables<_>| tables.records.page(from.at, limit, PAGE_BYTES);
                let (found, next) = self.read(self.snapshot().await?, read).await?;
                (found, next.map(|at| Cursor { at, ..from }))
            }
        };
        let examined = found.len();
        // Topic and state are checked before the body is unpacked.
        found.retain(|(record, _)| {
            filter.topic.as_ref().is_none_or(|topic| topic.as_str() == &*record.topic)
                && filter.state.is_none_or(|state| state == record.state())
        });
        let items = found.into_iter().filter_map(show).collect();
        Ok(Page { items, next, examined })
    }

    /// Returns jobs with a tag, and where the next page begins; `None` after the last page.
    async fn page_of_tag(
        &self,
        tag: TenantTag,
        from: Cursor,
        limit: usize,
    ) -> Result<(Vec<(Record, Body)>, Option<Cursor>), StoreError> {
        self.read(self.snapshot().await?, move |tables| {
            let numbers = tables.tagged.range(&tag, from.at)?;
            let entries = numbers.map(|number| number.map(|number| (number, number)));
            let (found, next) = indexed(&tables.records, entries, limit)?;
            Ok((found, next.map(|at| Cursor { at, ..from })))
        })
        .await
    }

    /// Returns dead jobs of the shard of a cursor, and where the next page begins, which may be the next shard; `None`
    /// after the last page. Fails with `Outdated` if there is no such shard.
    async fn page_of_dead(
        &self,
        from: Cursor,
        limit: usize,
    ) -> Result<(Vec<(Record, Body)>, Option<Cursor>), StoreError> {
        let shards = self.options.shards;
        if from.shard >= shards {
            return Err(StoreError::Outdated);
        }
        self.read(self.snapshot().await?, move |tables| {
            let entries = tables.dead.range(from.shard, place(from), u64::MAX)?;
            let entries = entries.map(|entry| entry.map(|(at, number)| (number, (at, number))));
            let (found, next) = indexed(&tables.records, entries, limit)?;
            if let Some((at, number)) = next {
                return Ok((found, Some(cursor(from.shard, at, number))));
            }
            let next = Cursor { shard: from.shard + 1, ..Cursor::START };
            Ok((found, Some(next).filter(|next| next.shard < shards)))
        })
        .await
    }
}

/// Returns what keeps a job from being delivered.
fn wait(txn: &mut Txn<'_>, record: &Record) -> Result<JobWait> {
    let position = match record.stage {
        Stage::Delayed | Stage::Waiting(_) => None,
        Stage::Ready { position } => Some(position),
        Stage::Reserved { .. } | Stage::Dead { .. } | Stage::Done { .. } | Stage::Cancelled { .. } => {
            return Ok(JobWait::default());
        }
    };
    let (shard, lane) = (txn.shard(), record.lane().name());
    let tables = &mut txn.tables;
    let topic = tables.counts.is_lane_paused(shard, &lane)?;
    let destination = tables.destinations.holder(shard, &lane)?.is_some();
    let pauses = JobPauses { topic, destination };
    if record.state() != State::Ready {
        return Ok(JobWait { pauses, ..JobWait::default() });
    }
    let limits = tables.limits.targets_of_lane(&lane)?;
    let before = position.map(|position| tables.ready.before(shard, &lane, position, MAX_BEFORE));
    let before = before.transpose()?;
    Ok(JobWait { pauses, limits, before, order: txn.order_wait(record)? })
}

/// Reads the jobs of the first entries of an index, at most `limit` and until their bodies have [`PAGE_BYTES`]. An
/// entry comes with the number of its job. Also returns the first entry that was not read; `None` after the last one.
fn indexed<E>(
    records: &Records<ReadTransaction>,
    entries: impl Iterator<Item = Result<(u64, E)>>,
    limit: usize,
) -> Result<(Vec<tables::StoredJob>, Option<E>)> {
    let (mut left, mut found) = (PAGE_BYTES, Vec::new());
    for (read, entry) in entries.enumerate() {
        let (number, entry) = entry?;
        if read == limit || left == 0 {
            return Ok((found, Some(entry)));
        }
        if let Some((record, body)) = records.get(number)?.zip(records.body(number)?) {
            left = left.saturating_sub(body.weight());
            found.push((record, body));
        }
    }
    Ok((found, None))
}

/// The bits of a cursor's position that are a time of death, in ms. Above them, and in `run`, is the job's number.
const TIME_BITS: u32 = 48;

/// Returns the cursor before a dead job, made of its time of death and its number.
const fn cursor(shard: u16, at: u64, number: u64) -> Cursor {
    let [_, _, a, b, c, d, e, f] = number.to_be_bytes();
    let high = u16::from_be_bytes([a, b]) as u64;
    Cursor { shard, at: high << TIME_BITS | at, run: u32::from_be_bytes([c, d, e, f]) }
}

/// Returns the time of death and the number of the dead job before which a cursor is.
const fn place(Cursor { at, run, .. }: Cursor) -> (u64, u64) {
    (at & ((1 << TIME_BITS) - 1), (at >> TIME_BITS) << u32::BITS | run as u64)
}

/// Returns everything that is stored of a job; `None` if it cannot be read.
fn stored(record: Record, body: &Body) -> Option<StoredJob> {
    let delivery =
        payload::unpack(&body.payload, record.origin.as_ref().into(), record.timeout(), record.tags.clone())?;
    let (key, content) = (answers::key(&record, body)?, ContentHash(record.content));
    Some(StoredJob { job: answers::job(record, key), delivery, content })
}
