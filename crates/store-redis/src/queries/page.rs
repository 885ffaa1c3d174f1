//! Pages of the jobs of a shard, by a scan of the hash of records. The scan meets every job that exists from the
//! first page to the last, whatever comes and goes meanwhile.
//!
//! The place of a scan is valid on the server that began it, as long as that runs: the order in the hash
//! depends on a seed that the server draws at its start.

use bytes::Bytes;
use futures_util::future::join_all;
use redis::Value;
use ringback_core::contract::{Cursor, Filter, FoundJob, MAX_PAGE, Page, Shard, StoreError, StoredJob};
use ringback_core::job::{Job, JobKey, Locator};

use crate::record::{Head, Tail};
use crate::redis_store::RedisStore;
use crate::{reply, script};

/// A page ends one step after its jobs have this many bytes, large payloads included.
const PAGE_BYTES: usize = 1024 * 1024;

/// How often a page is read if jobs change while their large payloads are read. Then each is read by itself.
const READS: usize = 3;

/// How much of each job a page contains.
#[derive(Clone, Copy)]
enum Extent {
    Known,
    Whole,
}

impl Extent {
    /// How many jobs one step looks at. A few large ones are many bytes.
    const fn step(self) -> usize {
        match self {
            Self::Known => 50,
            Self::Whole => 4,
        }
    }
}

/// A job as the script answers it.
struct Found {
    locator: Locator,
    head: Head,
    tail: Tail,
}

impl Found {
    fn parse(answer: Value) -> Result<Self, StoreError> {
        let (locator, code, job_state, lane, record): ([u8; 12], i64, Bytes, String, Bytes) =
            reply::read(answer, "a job of a page")?;
        let head = Head::parse(reply::state(code)?, job_state, &record)?;
        Ok(Self { locator: Locator(locator), head, tail: Tail::parse(&lane, record)? })
    }
}

impl RedisStore {
    pub async fn page(
        &self,
        filter: &Filter,
        from: Option<Cursor>,
        look: usize,
    ) -> Result<Page<Job>, StoreError> {
        let (_, found) = self.read_on(Extent::Known, filter, from, look).await?;
        let items =
            found.items.into_iter().map(|job| job.head.into_job(job.tail.key, job.tail.tags)).collect();
        Ok(Page { items, next: found.next })
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
            // Read at once, so that many large payloads wait no longer than one.
            let kept = join_all(found.items.into_iter().map(|job| self.kept(shard, job))).await;
            let (mut items, mut has_changed) = (Vec::with_capacity(kept.len()), false);
            for (key, kept) in keys.iter().zip(kept) {
                let kept = match kept {
                    // A busy page may change at each read, and what is pending all the time must be on it.
                    Ok(None) if is_last => self.pending(shard, key, filter).await,
                    kept => kept,
                };
                match kept {
                    Ok(Some(job)) => items.push(job),
                    Ok(None) => has_changed = true,
                    Err(error @ StoreError::Unreadable(_)) => log_skipped(shard, &error),
                    Err(error) => return Err(error),
                }
            }
            if !has_changed || is_last {
                return Ok(Page { items, next: found.next });
            }
            reads += 1;
        }
    }

    /// A job as it is now, if it has not ended and is in the state of the filter.
    async fn pending(
        &self,
        shard: Shard,
        key: &JobKey,
        filter: &Filter,
    ) -> Result<Option<StoredJob>, StoreError> {
        let found = self.get_stored(shard, key).await?;
        let Some(FoundJob::Stored(job)) = found else { return Ok(None) };
        Ok(Some(*job).filter(|job| filter.state.is_none_or(|state| state == job.job.state)))
    }

    /// `None` when the job has ended meanwhile, or another submit has taken its place.
    async fn kept(&self, shard: Shard, found: Found) -> Result<Option<StoredJob>, StoreError> {
        let Found { locator, head, tail } = found;
        let found = self.delivery(shard, locator, &head, tail).await?;
        let content = head.content;
        Ok(found.map(|(key, delivery)| StoredJob {
            job: head.into_job(key, delivery.tags.clone()),
            delivery,
            content,
        }))
    }

    /// Reads a page, and returns its shard with it.
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
        let (life, step) = (format!("{:08x}", from.life), extent.step().min(look));
        let state = filter.state.map_or(0, reply::state_code);
        let topic = filter.topic.as_ref().map_or("", |topic| topic.as_str());
        let is_whole = matches!(extent, Extent::Whole);
        let args = (from.at, life, look, step, state, topic, is_whole, PAGE_BYTES);
        let answer = self.ask(&script::PAGE, shard, args).await?;
        let (life, at, found): (_, _, Vec<Value>) = reply::scanned(answer, script::PAGE.name())?;
        let mut items = Vec::with_capacity(found.len());
        for answer in found {
            match Found::parse(answer) {
                Ok(found) => items.push(found),
                Err(error) => log_skipped(shard, &error),
            }
        }
        let next = self.next(from.shard, &at, &life)?;
        Ok((shard, Page { items, next }))
    }

    /// The place behind a page: in its shard, or at the start of the next shard.
    fn next(&self, shard: u16, at: &str, life: &str) -> Result<Option<Cursor>, StoreError> {
        let at = at.parse().map_err(|_| StoreError::Unreadable("a place in a scan"))?;
        if at == 0 {
            let next = Cursor { shard: shard + 1, ..Cursor::START };
            return Ok(Some(next).filter(|next| next.shard < self.options.shards));
        }
        let life = u32::from_str_radix(life, 16).map_err(|_| StoreError::Unreadable("a server's run_id"))?;
        Ok(Some(Cursor { shard, at, life }))
    }
}

/// Logs a job that cannot be read. The page goes on without it.
fn log_skipped(shard: Shard, error: &StoreError) {
    tracing::error!(shard = shard.0, %error, "a job cannot be read and is skipped");
}
