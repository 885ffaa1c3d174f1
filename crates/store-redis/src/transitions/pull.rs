//! Pull jobs: granting them to a consumer, listing their topics, settling them by receipts, and reading what decides on
//! a retry, also of jobs whose lease has expired.

use bytes::Bytes;
use futures_util::future::join_all;
use redis::Value;
use ringback_core::clock::{Timestamp, millis_up};
use ringback_core::job::{Locator, Topic};
use ringback_core::lane::{Lane, SettleHint};
use ringback_core::outcome::Outcome;
use ringback_core::state::State;
use ringback_core::store_types::{
    ExpiredLease, LeaseCheck, Pull, Pulled, PulledJob, Receipt, RetryContext, SettleResult, Shard,
    StoreError, payload,
};

use super::reserve::{Grant, Granted, RESERVE_BYTES, all_read};
use super::settle::pack_outcome;
use crate::record::{self, FixedFields, OptionalFields};
use crate::redis_store::RedisStore;
use crate::{reply, script};

/// The most bytes that a payload has before the body.
const MAX_META: usize = 64 * 1024 + 2;

impl RedisStore {
    pub async fn pull(&self, shard: Shard, ask: &Pull<'_>) -> Result<Pulled, StoreError> {
        let lane = self.lane_key()?.id(Lane::pull(ask.topic), 0);
        let pull = self.call(&script::PULL, shard).arg(ask.caller).arg(&ask.sequence.to_be_bytes());
        let pull = pull.arg(&lane.0).arg(ask.limit).arg(&ask.bits).arg(ask.ttr.map_or(0, millis_up));
        let pull = pull.arg(millis_up(ask.default_ttr)).arg(RESERVE_BYTES).arg(ask.topic.as_str());
        let Grant { now_us, has_more, jobs, .. } = Grant::parse(pull.run().await?)?;
        let now = Timestamp::from_millis(now_us / 1000);
        let jobs = all_read(shard, jobs.into_iter().map(|job| self.pulled(shard, job))).await;
        Ok(Pulled { jobs, more: has_more, now })
    }

    /// Unpacks a granted job and reads its large payload; `None` if that is gone. Fails if it cannot be unpacked.
    async fn pulled(&self, shard: Shard, job: Granted) -> Result<Option<PulledJob>, StoreError> {
        let Granted { locator, lane, job_state, record } = job;
        let head = FixedFields::parse(State::Reserved, job_state, &record)?;
        let tail = OptionalFields::parse(&lane, record)?;
        let found = self.delivery(shard, locator, &head, tail).await?;
        let receipt = Receipt { shard, locator, lease: head.lease };
        let FixedFields { attempts: attempt, deadline, due, first_due, .. } = head;
        Ok(found.map(|(key, delivery)| {
            let expires = delivery.expires.and_then(|expires| expires.of(due, first_due));
            PulledJob { receipt, key, attempt, deadline, expires, delivery }
        }))
    }

    pub async fn pull_topics(
        &self,
        shard: Shard,
        from: usize,
        limit: usize,
    ) -> Result<(Vec<Topic>, usize), StoreError> {
        let (looked_at, topics): (usize, Vec<String>) =
            self.call(&script::PULL_LANES, shard).arg((from, limit)).run().await?;
        Ok((topics.iter().filter_map(|topic| Topic::from_stored(topic)).collect(), looked_at))
    }

    pub async fn lease_info(&self, receipt: &Receipt) -> Result<Option<RetryContext>, StoreError> {
        let get = self.call(&script::LEASE_INFO, receipt.shard).arg(&receipt.locator.0);
        let parts: Vec<Bytes> = get.arg(&record::pack_lease(receipt.lease)).run().await?;
        let Ok([job_state, record, lane]) = <[Bytes; 3]>::try_from(parts) else { return Ok(None) };
        let head = FixedFields::parse(State::Reserved, job_state, &record)?;
        let tries = self.tries(receipt.shard, receipt.locator, &head, record).await?;
        Ok(Some(RetryContext { topic: topic_in(&lane)?, ..tries }))
    }

    pub async fn settle_receipts(
        &self,
        shard: Shard,
        outcomes: &[(Receipt, Outcome)],
        counting: LeaseCheck,
    ) -> Result<Vec<SettleResult>, StoreError> {
        let mut settle = self.call(&script::SETTLE_RECEIPTS, shard);
        if counting == LeaseCheck::Current {
            // No client waits for the others.
            settle = settle.confirmed();
        }
        settle = settle.arg(self.keep()).arg(u8::from(counting == LeaseCheck::Expired));
        for (receipt, outcome) in outcomes {
            settle = settle.arg(&receipt.locator.0).arg(&record::pack_lease(receipt.lease));
            settle = settle.arg(pack_outcome(outcome, &SettleHint::default(), None));
        }
        let answers: Vec<i64> = settle.run().await?;
        answers.into_iter().map(reply::settled).collect()
    }

    /// Unpacks the pull jobs with expired leases that recover answers: locator, job state, record, lane name of each. A
    /// job whose retry policy cannot be read has the defaults, one whose lane has no name no topic. A job that cannot be
    /// read at all is logged and left out. Fails with `Unreadable` if the answer is no such list.
    pub(crate) async fn expired(&self, shard: Shard, answer: Value) -> Result<Vec<ExpiredLease>, StoreError> {
        let found: Vec<([u8; 12], Bytes, Bytes, Bytes)> = reply::read(answer, "expired leases")?;
        let read = found.into_iter().map(async |(locator, job_state, record, lane)| {
            let expired = self.expired_job(shard, Locator(locator), job_state, record, &lane).await;
            expired.inspect_err(|error| {
                let job = locator.escape_ascii();
                if error.is_transient() {
                    tracing::warn!(shard = shard.0, %job, %error, "an expired lease was not read; it will be again");
                } else {
                    tracing::error!(shard = shard.0, %job, %error, "a job whose lease has expired cannot be read");
                }
            })
        });
        Ok(join_all(read).await.into_iter().flatten().collect())
    }

    async fn expired_job(
        &self,
        shard: Shard,
        locator: Locator,
        job_state: Bytes,
        record: Bytes,
        lane: &[u8],
    ) -> Result<ExpiredLease, StoreError> {
        let head = FixedFields::parse(State::Reserved, job_state, &record)?;
        let tries = self.tries(shard, locator, &head, record).await?;
        let tries = RetryContext { topic: topic_in(lane).unwrap_or_default(), ..tries };
        Ok(ExpiredLease { receipt: Receipt { shard, locator, lease: head.lease }, tries })
    }

    /// Returns what decides on a job's retry, without its topic. Reads the start of a large payload. A payload that is
    /// gone or cannot be read counts as empty.
    async fn tries(
        &self,
        shard: Shard,
        locator: Locator,
        head: &FixedFields,
        record: Bytes,
    ) -> Result<RetryContext, StoreError> {
        let packed = if head.is_external {
            let key = self.keys.external(shard, locator);
            let get = self.command("GETRANGE", shard, "a job's payload").arg((key, 0, MAX_META));
            get.run::<Option<Bytes>>().await?.unwrap_or_default()
        } else {
            OptionalFields::parse("topic ", record).map_or_else(|_| Bytes::new(), |tail| tail.payload)
        };
        let FixedFields { failures, due, first_due, .. } = *head;
        let (retry, expires) = payload::retry_parts(&packed);
        let expires = expires.and_then(|expires| expires.of(due, first_due));
        Ok(RetryContext { failures, first_due, expires, retry, topic: None })
    }
}

/// Returns the topic in a lane's name; `None` if the name is empty. Fails with `Unreadable` if it is no UTF-8.
fn topic_in(lane: &[u8]) -> Result<Option<Topic>, StoreError> {
    let lane = std::str::from_utf8(lane).map_err(|_| StoreError::Unreadable("a lane's name"))?;
    Ok(Lane::parse(lane).and_then(|lane| Topic::from_stored(lane.topic)))
}
