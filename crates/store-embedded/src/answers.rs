//! Converts stored jobs to the types that callers get: a job, a lease, a pulled job, an expired lease, and the data for
//! the delay of a retry.

use std::time::Duration;

use ringback_core::clock::Timestamp;
use ringback_core::job::{Expires, Job, JobKey, Locator, Topic};
use ringback_core::lane::SettleHint;
use ringback_core::outcome::LastAttempt;
use ringback_core::store_types::{
    ExpiredLease, Lease, LeaseGrant, PulledJob, Receipt, RetryContext, Shard, StoreClock, payload,
};
use tokio::time::Instant;

use super::tables::{Body, Last, Record, Stage};

/// Returns the topic and id of a job; `None` if they cannot be read.
pub(crate) fn key(record: &Record, body: &Body) -> Option<JobKey> {
    Some(JobKey { topic: Topic::from_stored(&record.topic)?, id: body.id.parse().ok()? })
}

/// Returns the job of a record. `key` is the key under which the record was found.
pub(crate) fn job(record: Record, key: JobKey) -> Job {
    let reason = record.reason().map(Into::into);
    let last = |last: Last| LastAttempt {
        at: Timestamp::from_millis(last.at),
        status: last.status,
        error: last.error.map(Into::into),
        duration: Duration::from_millis(last.duration),
    };
    Job {
        key,
        state: record.state(),
        due: Timestamp::from_millis(record.due),
        created: Timestamp::from_millis(record.created),
        attempts: record.attempts,
        failures: record.failures,
        last: record.last.map(last),
        reason,
        tags: record.tags,
    }
}

/// When jobs were reserved, by the store's time in µs and by the local clock, and whether the shard was watched then.
#[derive(Clone, Copy)]
pub(crate) struct ReservedAt {
    pub(crate) now_us: u64,
    pub(crate) is_watched: bool,
    /// When the reserve was called, by the local clock.
    pub(crate) asked: Instant,
}

/// Returns the lease of a reserved job; `None` if the job is not reserved or cannot be read.
pub(crate) fn lease(shard: Shard, record: &Record, body: &Body, at: ReservedAt) -> Option<Lease> {
    let Stage::Reserved { deadline, .. } = record.stage else { return None };
    let ReservedAt { now_us, is_watched, asked } = at;
    let left = deadline.saturating_mul(1000).saturating_sub(now_us);
    let grant = LeaseGrant {
        receipt: receipt(shard, record)?,
        deadline: asked + Duration::from_micros(left),
        clock: StoreClock { shown_us: now_us, asked },
        hint: SettleHint::default(),
        is_watched,
    };
    let delivery =
        payload::unpack(&body.payload, record.origin.as_ref().into(), record.timeout(), record.tags.clone())?;
    Some(Lease {
        grant,
        response: None,
        success: None,
        key: key(record, body)?,
        delivery,
        due: Timestamp::from_millis(record.due),
        first_due: Timestamp::from_millis(record.first_due()),
        created: Timestamp::from_millis(record.created),
        attempt: record.attempts,
        failures: record.failures,
    })
}

/// Returns a reserved pull job; `None` if the job is not reserved or cannot be read.
pub(crate) fn pulled_job(shard: Shard, record: &Record, body: &Body) -> Option<PulledJob> {
    let Stage::Reserved { deadline, .. } = record.stage else { return None };
    let delivery =
        payload::unpack(&body.payload, record.origin.as_ref().into(), record.timeout(), record.tags.clone())?;
    Some(PulledJob {
        receipt: receipt(shard, record)?,
        expires: expires(record, delivery.expires),
        delivery,
        key: key(record, body)?,
        attempt: record.attempts,
        deadline: Timestamp::from_millis(deadline),
    })
}

/// Returns the expired lease of a pull job; `None` for a job that is not reserved.
pub(crate) fn expired_lease(shard: Shard, record: &Record, body: &Body) -> Option<ExpiredLease> {
    Some(ExpiredLease { receipt: receipt(shard, record)?, tries: retry_context(record, body) })
}

/// Returns the data that determines the delay before the next attempt of a job.
pub(crate) fn retry_context(record: &Record, body: &Body) -> RetryContext {
    let (retry, own_expires) = payload::retry_parts(&body.payload);
    let (topic, expires) = (Topic::from_stored(&record.topic), expires(record, own_expires));
    let first_due = Timestamp::from_millis(record.first_due());
    RetryContext { failures: record.failures, first_due, expires, retry, topic }
}

/// Returns when a job expires by its own setting; `None` if that is `None`.
fn expires(record: &Record, expires: Option<Expires>) -> Option<Timestamp> {
    let [due, first_due] = [record.due, record.first_due()].map(Timestamp::from_millis);
    expires?.of(due, first_due)
}

fn receipt(shard: Shard, record: &Record) -> Option<Receipt> {
    Some(Receipt { shard, locator: Locator(record.locator), lease: record.lease()? })
}
