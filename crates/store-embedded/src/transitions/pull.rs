//! pull: ready → reserved, the first pull jobs of one topic, for a consumer. Also lists the topics with ready pull jobs,
//! and reads the retry data of a leased job.

use ringback_core::clock::{Timestamp, millis_up};
use ringback_core::job::Topic;
use ringback_core::lane::Lane;
use ringback_core::store_types::{Pull, Pulled, Receipt, RetryContext, Shard, StoreError};

use super::grant::{Caller, MAX_BYTES, find_ready, grant_leases, granted_before, read_granted};
use crate::error::Result;
use crate::tables::{PAUSED, PULL, StoredJob};
use crate::txn::Txn;
use crate::{EmbeddedStore, TRANSITION_BYTES, answers};

impl EmbeddedStore {
    pub async fn pull(&self, shard: Shard, ask: &Pull<'_>) -> Result<Pulled, StoreError> {
        let request = Request::from(ask);
        let pull = move |txn: &mut Txn<'_>| Ok((pull(txn, &request)?, Timestamp::from_millis(txn.now())));
        let ((found, more), now) = self.call(shard, ask.limit * TRANSITION_BYTES, pull).await?;
        let jobs = read_granted(shard, &found, |record, body| answers::pulled_job(shard, record, body));
        Ok(Pulled { jobs, more, now })
    }

    /// Returns topics that have ready pull jobs, at most `limit` without the first `from`, and how many lanes were read.
    pub async fn pull_topics(
        &self,
        shard: Shard,
        from: usize,
        limit: usize,
    ) -> Result<(Vec<Topic>, usize), StoreError> {
        let lanes =
            self.call(shard, 0, move |txn| txn.tables.ready.pull_lanes(txn.shard(), from, limit)).await?;
        Ok((lanes.iter().filter_map(|name| Topic::from_stored(Lane::topic_of(name))).collect(), lanes.len()))
    }

    /// Returns the data that determines the next delay of a job; `None` if the receipt is not the job's current one.
    pub async fn lease_info(&self, receipt: &Receipt) -> Result<Option<RetryContext>, StoreError> {
        let (locator, lease) = (receipt.locator.0, receipt.lease);
        let find = move |txn: &mut Txn<'_>| {
            let job = txn.tables.records.find(locator)?.filter(|job| job.lease() == Some(lease));
            job.map_or(Ok(None), |job| txn.tables.records.with_body(job))
        };
        let found = self.call(receipt.shard, 0, find).await?;
        Ok(found.map(|(record, body)| answers::retry_context(&record, &body)))
    }
}

struct Request {
    caller: Caller,
    lane: String,
    limit: usize,
    /// The length of the leases, in ms; `None` for the length that each job names.
    duration: Option<u64>,
    /// The length of the lease of a job that names none, in ms.
    default_duration: u64,
}

impl From<&Pull<'_>> for Request {
    fn from(ask: &Pull<'_>) -> Self {
        Self {
            caller: Caller { name: ask.caller.to_owned(), sequence: ask.sequence, bits: ask.bits },
            lane: Lane::pull(ask.topic).name(),
            limit: ask.limit,
            duration: ask.ttr.map(millis_up),
            default_duration: millis_up(ask.default_ttr),
        }
    }
}

/// Reserves the first jobs of a lane. Returns them, and whether there may be more. A repeated call gets its jobs again.
/// None while the topic is paused or the archive outbox is too full.
fn pull(txn: &mut Txn<'_>, request: &Request) -> Result<(Vec<StoredJob>, bool)> {
    if let Some(jobs) = granted_before(txn, &request.caller)? {
        return Ok((jobs, true));
    }
    if txn.is_archive_too_full() {
        return Ok((Vec::new(), false));
    }
    let (shard, lane) = (txn.shard(), request.lane.as_str());
    if txn.tables.counts.is_lane_paused(shard, lane)? {
        if !txn.tables.ready.is_empty(shard, lane)? {
            txn.tables.ready.set_turn(shard, lane, Some(PAUSED))?;
        }
        return Ok((Vec::new(), false));
    }
    let (mut jobs, mut budget) = (Vec::new(), MAX_BYTES);
    let taken = find_ready(txn, lane, request.limit, &mut budget, &mut jobs)?;
    grant_leases(txn, &request.caller, &mut jobs, |job| {
        let own = if job.timeout == 0 { request.default_duration } else { job.timeout };
        request.duration.unwrap_or(own)
    })?;
    txn.tables.ready.set_turn(shard, lane, taken.is_rest.then_some(PULL))?;
    Ok((jobs, taken.is_rest))
}
