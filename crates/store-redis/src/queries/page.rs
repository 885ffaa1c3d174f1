//! Pages of jobs that match a filter, shard by shard: of those with a tag and of the dead ones by an index, of others by
//! a scan of the hash of records. Every matching job that exists from the first page to the last is returned, whatever
//! is added or removed meanwhile.
//!
//! The cursor of a scan is valid only on the server that made it and until that restarts: the order in the hash depends
//! on a seed that the server draws at its start. The cursor of an index is valid on any server.

use bytes::Bytes;
use futures_util::future::{join_all, try_join_all};
use redis::Value;
use ringback_core::clock::Timestamp;
use ringback_core::destination::Destination;
use ringback_core::job::{JobKey, Locator, Tenant, TenantScope};
use ringback_core::store_types::{
    Cursor, Filter, FoundJob, ListedJob, MAX_PAGE, Page, Shard, StoreError, StoredJob, TimeRange,
};

use crate::record::{FixedFields, OptionalFields};
use crate::redis_store::RedisStore;
use crate::{reply, script};

/// A page ends one step after its jobs have this many bytes, large payloads included.
const PAGE_BYTES: usize = 1024 * 1024;

/// How often a page is read if its jobs change while payloads are read; then each changed job is read alone.
const READS: usize = 3;

/// The run in which a page of an index is read.
const ANY_RUN: u32 = 0;

/// Later than any time that a store keeps, in ms.
const MAX_TIME: u64 = 1 << 48;

/// How much of each job a page contains.
#[derive(Clone, Copy)]
enum Extent {
    Known,
    Whole,
}

impl Extent {
    /// Returns how many jobs one step of the script reads. With payloads these are few, since they may be large.
    const fn step(self) -> usize {
        match self {
            Self::Known => 50,
            Self::Whole => 4,
        }
    }
}

pub(super) struct Found {
    pub(super) locator: Locator,
    pub(super) head: FixedFields,
    pub(super) tail: OptionalFields,
}

impl Found {
    fn into_job(self) -> ListedJob {
        ListedJob { job: self.head.into_job(self.tail.key, self.tail.tags), origin: self.tail.origin.into() }
    }

    fn parse(answer: Value) -> Result<Self, StoreError> {
        let (locator, code, job_state, lane, record): ([u8; 12], i64, Bytes, String, Bytes) =
            reply::read(answer, "a job of a page")?;
        let head = FixedFields::parse(reply::state(code)?, job_state, &record)?;
        Ok(Self { locator: Locator(locator), head, tail: OptionalFields::parse(&lane, record)? })
    }
}

impl RedisStore {
    pub async fn page_listed(
        &self,
        filter: &Filter,
        from: Option<Cursor>,
        look: usize,
    ) -> Result<Page<ListedJob>, StoreError> {
        let (_, Page { items, next, examined }) = self.read_on(Extent::Known, filter, from, look).await?;
        let items = items.into_iter().map(Found::into_job);
        let items = items.filter(|listed| filter.matches(&listed.job, &listed.origin)).collect();
        Ok(Page { items, next, examined })
    }

    /// Returns how many jobs the pages of a filter read in all; `None` if no index serves the filter.
    pub async fn indexed_jobs(&self, filter: &Filter) -> Result<Option<u64>, StoreError> {
        if filter.index().is_none() {
            return Ok(None);
        }
        let (state, _, tenant, ..) = lane_args(filter);
        let tag = filter.tag.as_deref().unwrap_or_default();
        let counts = (0..self.options.shards).map(async |shard| {
            self.call(&script::INDEXED, Shard(shard)).arg((state, &tenant, tag)).run::<u64>().await
        });
        Ok(Some(try_join_all(counts).await?.into_iter().sum()))
    }

    pub async fn page_stored(
        &self,
        filter: &Filter,
        from: Option<Cursor>,
        look: usize,
    ) -> Result<Page<StoredJob>, StoreError> {
        let mut reads = 1;
        loop {
            let (shard, found) = self.read_on(Extent::Whole, filter, from, look).await?;
            let is_last = reads == READS;
            let keys: Vec<_> = found.items.iter().map(|job| job.tail.key.clone()).collect();
            // Large payloads are read at the same time, so that many take no longer than one.
            let kept = join_all(found.items.into_iter().map(|job| self.kept(shard, job))).await;
            let (mut items, mut has_changed) = (Vec::with_capacity(kept.len()), false);
            for (key, kept) in keys.iter().zip(kept) {
                let kept = match kept {
                    // A busy page may change at each read, and a job that is pending all the time must be on it.
                    Ok(None) if is_last => self.pending(shard, key).await,
                    kept => kept,
                };
                match kept {
                    Ok(Some(job)) => items.extend(Some(job).filter(|job| fits(filter, job))),
                    Ok(None) => has_changed = true,
                    Err(error @ StoreError::Unreadable(_)) => log_skipped(shard, &error),
                    Err(error) => return Err(error),
                }
            }
            if !has_changed || is_last {
                return Ok(Page { items, next: found.next, examined: found.examined });
            }
            reads += 1;
        }
    }

    /// Returns a job as it is now; `None` if it has ended or is unknown.
    async fn pending(&self, shard: Shard, key: &JobKey) -> Result<Option<StoredJob>, StoreError> {
        let found = self.get_stored(shard, key).await?;
        let Some(FoundJob::Stored(job)) = found else { return Ok(None) };
        Ok(Some(*job))
    }

    /// Returns all that is stored of a job, large payload included; `None` if it has ended or was replaced meanwhile.
    pub(super) async fn kept(&self, shard: Shard, found: Found) -> Result<Option<StoredJob>, StoreError> {
        let Found { locator, head, tail } = found;
        let found = self.delivery(shard, locator, &head, tail).await?;
        let content = head.content;
        Ok(found.map(|(key, delivery)| StoredJob {
            job: head.into_job(key, delivery.tags.clone()),
            delivery,
            content,
        }))
    }

    /// Reads at most `look` jobs from a cursor on, and returns those that match as far as the script checks, with their
    /// shard. Logs and skips unreadable ones. Fails with `Outdated` if the cursor is not valid any more.
    async fn read_on(
        &self,
        extent: Extent,
        filter: &Filter,
        from: Option<Cursor>,
        look: usize,
    ) -> Result<(Shard, Page<Found>), StoreError> {
        let from = from.unwrap_or(Cursor::START);
        if from.shard >= self.options.shards {
            return Err(StoreError::Outdated);
        }
        let shard = Shard(from.shard);
        let look = look.clamp(1, MAX_PAGE);
        let (run, step) = (format!("{:08x}", from.run), extent.step().min(look));
        let at = if from.run == ANY_RUN && from.at != 0 {
            format!("{:016x}", from.at)
        } else {
            from.at.to_string()
        };
        let args = (
            (at, run, look, step),
            (matches!(extent, Extent::Whole), PAGE_BYTES),
            lane_args(filter),
            job_args(filter),
        );
        let answer = self.call(&script::PAGE, shard).arg(args).run().await?;
        let (run, at, (examined, found)): (_, _, (usize, Vec<Value>)) =
            reply::scanned(answer, script::PAGE.name())?;
        let mut items = Vec::with_capacity(found.len());
        for answer in found {
            match Found::parse(answer) {
                Ok(found) => items.push(found),
                Err(error) => log_skipped(shard, &error),
            }
        }
        let next = self.next(from.shard, &at, &run)?;
        Ok((shard, Page { items, next, examined }))
    }

    /// Returns the cursor after a page: in its shard, or at the start of the next shard; `None` after the last shard.
    fn next(&self, shard: u16, at: &str, run: &str) -> Result<Option<Cursor>, StoreError> {
        let run = u32::from_str_radix(run, 16).map_err(|_| StoreError::Unreadable("a server's run_id"))?;
        let at = if run == ANY_RUN { u64::from_str_radix(at, 16) } else { at.parse() };
        let at = at.map_err(|_| StoreError::Unreadable("a place in a scan"))?;
        if at == 0 {
            let next = Cursor { shard: shard + 1, ..Cursor::START };
            return Ok(Some(next).filter(|next| next.shard < self.options.shards));
        }
        Ok(Some(Cursor { shard, at, run }))
    }
}

/// Returns the conditions of a filter on the state of jobs and their lanes, as arguments of the script.
fn lane_args(filter: &Filter) -> (usize, &str, String, String, String) {
    let topic = filter.topic.as_ref().map_or("", |topic| topic.as_str());
    let tenant = match &filter.scope {
        TenantScope::All => String::new(),
        TenantScope::One(tenant) => {
            format!("{}{}", Tenant::MARK, tenant.as_ref().map_or("", |tenant| tenant.as_str()))
        }
    };
    let host = filter.host.as_ref().map_or_else(String::new, |host| host.host().to_owned());
    let port =
        filter.host.as_ref().and_then(Destination::port).map_or_else(String::new, |port| port.to_string());
    (filter.only_state().map_or(0, reply::state_code), topic, tenant, host, port)
}

/// Returns the conditions of a filter on jobs that the script checks, as its arguments.
fn job_args(filter: &Filter) -> (&str, u64, u64, u64, u64, bool) {
    let range = |range: TimeRange| {
        let after = range.after().map_or(0, Timestamp::as_millis);
        (after, range.before().map_or(MAX_TIME, Timestamp::as_millis))
    };
    let ((due, due_end), (created, created_end)) = (range(filter.due), range(filter.created));
    let only_tried = filter.reason.is_some()
        || filter.status.is_some()
        || filter.error.is_some()
        || !filter.failed.is_all();
    (filter.tag.as_deref().unwrap_or_default(), due, due_end, created, created_end, only_tried)
}

fn fits(filter: &Filter, job: &StoredJob) -> bool {
    filter.matches(&job.job, job.delivery.callback.origin())
}

/// Logs that a job cannot be read and is left out of a page.
fn log_skipped(shard: Shard, error: &StoreError) {
    tracing::error!(shard = shard.0, %error, "a job cannot be read and is skipped");
}
