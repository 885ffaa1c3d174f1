//! Jobs for pull: what a consumer asks the writer for, and what it is given.

use std::time::Duration;

use ringback_core::clock::{Timestamp, millis_up};
use ringback_core::contract::{
    ExpiredLease, LeaseCheck, Pull, PullOutcome, PullReceipt, Pulled, PulledJob, Receipt, RetryContext,
    Settled, Shard, StoreError, payload,
};
use ringback_core::job::{JobKey, Locator};
use ringback_core::lane::{LaneId, PullLane};

use super::EmbeddedStore;
use super::edges::{self, Grab, Said};
use super::tables::{Body, Record, Stage};

impl EmbeddedStore {
    pub async fn pull(&self, shard: Shard, ask: &Pull<'_>) -> Result<Pulled, StoreError> {
        let grab = Grab::from(ask);
        let (found, more) = self.call(shard, ask.limit * 256, move |txn| edges::pull(txn, &grab)).await?;
        let jobs = found.into_iter().filter_map(|(record, body)| {
            let number = record.number;
            // The rest is not lost with one: its lease runs out and it is recovered.
            let job = pulled(shard, &record, &body);
            if job.is_none() {
                tracing::error!(shard = shard.0, job.number = number, "a reserved job cannot be read");
            }
            job
        });
        Ok(Pulled { jobs: jobs.collect(), more })
    }

    pub async fn pull_lanes(
        &self,
        shard: Shard,
        from: usize,
        limit: usize,
    ) -> Result<Vec<PullLane>, StoreError> {
        let lanes = self.call(shard, 0, move |txn| txn.tables.ready.pulls(txn.shard(), from, limit)).await?;
        Ok(lanes.iter().map(|words| PullLane(LaneId::of(words))).collect())
    }

    pub async fn lease_info(&self, receipt: &PullReceipt) -> Result<Option<RetryContext>, StoreError> {
        let (locator, lease) = (receipt.locator.0, receipt.lease);
        let found = self.call(receipt.shard, 0, move |txn| edges::held(txn, locator, lease)).await?;
        Ok(found.map(|(record, body)| tries(&record, &body)))
    }

    pub async fn renew_receipt(
        &self,
        receipt: &PullReceipt,
        by: Duration,
    ) -> Result<Option<Timestamp>, StoreError> {
        let (locator, lease, ms) = (receipt.locator.0, receipt.lease, millis_up(by));
        let deadline =
            self.call(receipt.shard, 256, move |txn| edges::renew_receipt(txn, locator, lease, ms));
        Ok(deadline.await?.map(Timestamp::from_millis))
    }

    pub async fn settle_receipts(
        &self,
        shard: Shard,
        words: &[(PullReceipt, PullOutcome)],
        counting: LeaseCheck,
    ) -> Result<Vec<Settled>, StoreError> {
        let words: Vec<_> = words.iter().map(Said::new).collect();
        let (keep, bytes) = (self.keep(), words.len() * 256);
        self.call(shard, bytes, move |txn| edges::settle_receipts(txn, &words, counting, keep)).await
    }
}

fn pulled(shard: Shard, record: &Record, body: &Body) -> Option<PulledJob> {
    let Stage::Reserved { deadline, .. } = record.stage else { return None };
    Some(PulledJob {
        receipt: receipt(shard, record)?,
        delivery: payload::unpack(&body.payload, record.origin.as_ref().into(), record.timeout())?,
        key: JobKey { topic: record.topic.parse().ok()?, id: body.id.parse().ok()? },
        attempt: record.attempts,
        deadline: Timestamp::from_millis(deadline),
    })
}

/// None for a job that is not reserved.
pub(crate) fn lapsed(shard: Shard, record: &Record, body: &Body) -> Option<ExpiredLease> {
    Some(ExpiredLease { receipt: receipt(shard, record)?, tries: tries(record, body) })
}

fn receipt(shard: Shard, record: &Record) -> Option<PullReceipt> {
    let Stage::Reserved { lease, bits, .. } = record.stage else { return None };
    let locator = Locator(record.locator);
    Some(PullReceipt { shard, locator, lease: Receipt { number: lease, bits } })
}

fn tries(record: &Record, body: &Body) -> RetryContext {
    let (retry, topic) = (payload::policy(&body.payload), record.topic.parse().ok());
    RetryContext { failures: record.failures, retry, topic }
}
