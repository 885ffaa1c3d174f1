//! Reading on through the jobs of a shard, by the scan of the hash they lie in. It passes every
//! job that is there from the first page to the last, whatever comes and goes meanwhile.
//!
//! Where a scan stands means something to the server that began it, as long as it runs: the
//! order in the hash hangs on a seed that is drawn at its start.

use futures_util::future::join_all;
use redis::Value;
use ringback_core::contract::{Cursor, Filter, MAX_PAGE, Page, Shard, StoreError, StoredJob};
use ringback_core::job::{Job, Locator};
use ringback_core::state::State;

use super::RedisStore;
use super::codec;
use super::layout::{Head, Tail};
use super::script::{self, reply};

/// A page ends once what it looked at has so many bytes, large payloads that it answers with
/// them, and one step more.
const PAGE_BYTES: usize = 1024 * 1024;

/// What is wanted of each job.
#[derive(Clone, Copy)]
enum Extent {
    Known,
    Whole,
}

impl Extent {
    /// How many jobs are looked at in one step. A few large ones are much.
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
        let parts: Result<[Value; 5], _> = reply::list(answer)?.try_into();
        let Ok([locator, state, run, lane, record]) = parts else {
            return Err(StoreError::Unreadable("a page"));
        };
        let locator = reply::bytes(locator)?;
        let locator = locator.as_ref().try_into().map_err(|_| StoreError::Unreadable("a locator"))?;
        let record = reply::bytes(record)?;
        let head = Head::parse(codec::state(reply::int(&state)?)?, reply::bytes(run)?, &record)?;
        let tail = Tail::parse(&reply::text(lane)?, record)?;
        Ok(Self { locator: Locator(locator), head, tail })
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
        let items = found.items.into_iter().map(|job| job.head.into_job(job.tail.key)).collect();
        Ok(Page { items, next: found.next })
    }

    pub async fn page_stored(
        &self,
        filter: &Filter,
        from: Option<Cursor>,
        look: usize,
    ) -> Result<Page<StoredJob>, StoreError> {
        let (shard, found) = self.read_on(Extent::Whole, filter, from, look).await?;
        // All at once, so that many large payloads wait no longer than one.
        let kept = join_all(found.items.into_iter().map(|job| self.kept(shard, job))).await;
        let mut items = Vec::with_capacity(kept.len());
        for kept in kept {
            match kept {
                Ok(kept) => items.extend(kept),
                Err(error @ StoreError::Unreadable(_)) => passed_over(shard, &error),
                Err(error) => return Err(error),
            }
        }
        Ok(Page { items, next: found.next })
    }

    /// `None` when the job has ended meanwhile.
    async fn kept(&self, shard: Shard, found: Found) -> Result<Option<StoredJob>, StoreError> {
        let Found { locator, head, tail } = found;
        let key = tail.key.clone();
        let delivery = self.delivery(shard, locator, &head, tail).await?;
        let content = head.content();
        Ok(delivery.map(|delivery| StoredJob { job: head.into_job(key), delivery, content }))
    }

    /// What a page finds, and in which shard.
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
        let answer = self.run(&script::PAGE, shard, |cmd| {
            cmd.arg(from.at).arg(format!("{:08x}", from.life)).arg(look);
            cmd.arg(extent.step().min(look)).arg(filter.state.map_or(0, code));
            cmd.arg(filter.topic.as_ref().map_or("", |topic| topic.as_str()));
            cmd.arg(u8::from(matches!(extent, Extent::Whole))).arg(PAGE_BYTES);
        });
        let mut parts = reply::list(answer.await?)?.into_iter();
        let life = parts.next().ok_or(StoreError::Unreadable("a page"))?;
        let at = parts.next().ok_or(StoreError::Outdated)?;
        let mut items = Vec::with_capacity(parts.len());
        for answer in parts {
            match Found::parse(answer) {
                Ok(found) => items.push(found),
                Err(error) => passed_over(shard, &error),
            }
        }
        let next = self.next(from.shard, &reply::text(at)?, &reply::text(life)?)?;
        Ok((shard, Page { items, next }))
    }

    /// The place behind a page: in its shard, else at the start of the next one.
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

/// The number of a state in a record.
fn code(state: State) -> usize {
    State::ALL.iter().position(|other| *other == state).map_or(0, |index| index + 1)
}

/// One that cannot be read does not keep the others from being read.
fn passed_over(shard: Shard, error: &StoreError) {
    tracing::error!(shard = shard.0, %error, "a job cannot be read and is passed over");
}
