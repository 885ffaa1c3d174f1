//! The edges of jobs for pull: what is asked for, what a consumer is given, and its word by
//! receipt alone. Large payloads are read after the script, as for push.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use redis::Value;
use ringback_core::clock::{Timestamp, millis_up};
use ringback_core::contract::{
    ExpiredLease, LeaseCheck, Pull, PullOutcome, PullReceipt, Pulled, PulledJob, Receipt, RetryContext,
    Settled, Shard, StoreError, payload,
};
use ringback_core::job::{Locator, Topic};
use ringback_core::lane::{LaneId, PullLane, lane_name};
use ringback_core::limits::{MAX_ERROR, truncated};
use ringback_core::state::State;

use super::layout::{Head, Tail, six};
use super::reserve::RESERVE_BYTES;
use super::script::{self, reply};
use super::{RedisStore, codec};

/// What precedes the body in a payload has no more bytes.
const META: usize = 64 * 1024 + 2;

impl RedisStore {
    pub async fn pull(&self, shard: Shard, ask: &Pull<'_>) -> Result<Pulled, StoreError> {
        let lane = LaneId::of(&lane_name(ask.topic, ""));
        let answer = self.run(&script::PULL, shard, |cmd| {
            cmd.arg(ask.caller).arg(&ask.sequence.to_be_bytes()).arg(&lane.0).arg(ask.limit).arg(&ask.bits);
            cmd.arg(ask.ttr.map_or(0, millis_up)).arg(millis_up(ask.default_ttr)).arg(RESERVE_BYTES);
        });
        let mut parts = reply::list(answer.await?)?.into_iter();
        let (Some(_now), Some(more), Some(words)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(StoreError::Unreadable("a pull's answer"));
        };
        let words = reply::text(words)?;
        let found = triples(parts)?;
        // All at once, so that many large payloads wait no longer than one.
        let read = found.into_iter().map(async |found| {
            let job = self.pulled(shard, found, &words).await;
            // The rest is not lost with one: its lease runs out and it is recovered.
            job.unwrap_or_else(|error| {
                tracing::error!(shard = shard.0, %error, "a reserved job cannot be read");
                None
            })
        });
        let jobs = join_all(read).await.into_iter().flatten().collect();
        Ok(Pulled { jobs, more: reply::int(&more)? == 1 })
    }

    /// `None` when its large payload has gone meanwhile, and the job with it.
    async fn pulled(&self, shard: Shard, found: Found, words: &str) -> Result<Option<PulledJob>, StoreError> {
        let Found { locator, run, record } = found;
        let head = Head::parse(State::Reserved, run, &record)?;
        let tail = Tail::parse(words, record)?;
        let key = tail.key.clone();
        let Some(delivery) = self.delivery(shard, locator, &head, tail).await? else { return Ok(None) };
        let receipt = receipt(shard, locator, &head);
        let (attempt, deadline) = (head.attempts, head.deadline);
        Ok(Some(PulledJob { receipt, key, attempt, deadline, delivery }))
    }

    pub async fn pull_lanes(
        &self,
        shard: Shard,
        from: usize,
        limit: usize,
    ) -> Result<Vec<PullLane>, StoreError> {
        let answer = self.run(&script::PULLS, shard, |cmd| {
            cmd.arg(from).arg(limit);
        });
        let lanes = reply::list(answer.await?)?.into_iter().map(|lane| {
            let lane = reply::bytes(lane)?;
            let id = lane.as_ref().try_into().map_err(|_| StoreError::Unreadable("a lane"))?;
            Ok(PullLane(LaneId(id)))
        });
        lanes.collect()
    }

    pub async fn lease_info(&self, receipt: &PullReceipt) -> Result<Option<RetryContext>, StoreError> {
        let answer = self.run(&script::HELD, receipt.shard, |cmd| {
            cmd.arg(&receipt.locator.0).arg(&packed(receipt));
        });
        let mut parts = reply::list(answer.await?)?.into_iter();
        let (Some(run), Some(record), Some(words)) = (parts.next(), parts.next(), parts.next()) else {
            return Ok(None);
        };
        let (run, record) = (reply::bytes(run)?, reply::bytes(record)?);
        let head = Head::parse(State::Reserved, run, &record)?;
        let tries = self.tries(receipt.shard, receipt.locator, &head, record).await?;
        Ok(Some(RetryContext { topic: topic_in(words)?, ..tries }))
    }

    pub async fn renew_receipt(
        &self,
        receipt: &PullReceipt,
        by: Duration,
    ) -> Result<Option<Timestamp>, StoreError> {
        let answer = self.run(&script::RENEW, receipt.shard, |cmd| {
            cmd.arg(&receipt.locator.0).arg(&packed(receipt)).arg(millis_up(by));
        });
        Ok(u64::try_from(reply::int(&answer.await?)?).ok().map(Timestamp::from_millis))
    }

    pub async fn settle_receipts(
        &self,
        shard: Shard,
        words: &[(PullReceipt, PullOutcome)],
        counting: LeaseCheck,
    ) -> Result<Vec<Settled>, StoreError> {
        let answer = self.run(&script::SETTLE_RECEIPTS, shard, |cmd| {
            self.keep(cmd);
            cmd.arg(u8::from(counting == LeaseCheck::Expired));
            for (receipt, word) in words {
                cmd.arg(&receipt.locator.0).arg(&packed(receipt)).arg(said(word));
            }
        });
        reply::list(answer.await?)?.iter().map(codec::settled).collect()
    }

    /// What recover has found of jobs for pull. One without a policy or topic that can be read is
    /// tried by default; one of which nothing can be is passed over, and keeps no other.
    pub(crate) async fn lapsed(&self, shard: Shard, answer: Value) -> Result<Vec<ExpiredLease>, StoreError> {
        let mut parts = reply::list(answer)?.into_iter();
        let words = parts.next().map_or(Ok(Vec::new()), reply::list)?;
        let found = triples(parts)?.into_iter().zip(words);
        let read = found.map(async |(found, words)| {
            let locator = found.locator;
            let job = self.lapsed_job(shard, found, words).await;
            job.inspect_err(|error| {
                let job = locator.0.escape_ascii();
                tracing::error!(shard = shard.0, %job, %error, "a job whose lease ran out cannot be read");
            })
        });
        Ok(join_all(read).await.into_iter().flatten().collect())
    }

    async fn lapsed_job(&self, shard: Shard, found: Found, words: Value) -> Result<ExpiredLease, StoreError> {
        let Found { locator, run, record } = found;
        let head = Head::parse(State::Reserved, run, &record)?;
        let tries = self.tries(shard, locator, &head, record).await?;
        let tries = RetryContext { topic: topic_in(words).unwrap_or_default(), ..tries };
        Ok(ExpiredLease { receipt: receipt(shard, locator, &head), tries })
    }

    async fn tries(
        &self,
        shard: Shard,
        locator: Locator,
        head: &Head,
        record: Bytes,
    ) -> Result<RetryContext, StoreError> {
        let packed = if head.is_external() {
            let key = self.keys.external(shard, locator);
            match self.topology.call(redis::cmd("GETRANGE").arg(key).arg(0).arg(META)).await? {
                Value::Nil => Bytes::new(),
                value => reply::bytes(value)?,
            }
        } else {
            Tail::parse("topic ", record).map_or_else(|_| Bytes::new(), |tail| tail.payload)
        };
        Ok(RetryContext { failures: head.failures, retry: payload::policy(&packed), topic: None })
    }
}

/// A job as the scripts answer it.
struct Found {
    locator: Locator,
    run: Bytes,
    record: Bytes,
}

fn triples(mut parts: impl Iterator<Item = Value>) -> Result<Vec<Found>, StoreError> {
    let mut found = Vec::new();
    while let (Some(locator), Some(run), Some(record)) = (parts.next(), parts.next(), parts.next()) {
        let locator = reply::bytes(locator)?;
        let locator = locator.as_ref().try_into().map_err(|_| StoreError::Unreadable("a locator"))?;
        let (run, record) = (reply::bytes(run)?, reply::bytes(record)?);
        found.push(Found { locator: Locator(locator), run, record });
    }
    Ok(found)
}

/// The topic of a lane in words; none where nothing is known of the lane.
fn topic_in(words: Value) -> Result<Option<Topic>, StoreError> {
    let words = reply::text(words)?;
    Ok(words.split(' ').next().and_then(|topic| topic.parse().ok()))
}

fn receipt(shard: Shard, locator: Locator, head: &Head) -> PullReceipt {
    PullReceipt { shard, locator, lease: Receipt { number: head.lease, bits: head.bits } }
}

/// Number and bits, as a run has them.
fn packed(receipt: &PullReceipt) -> [u8; 16] {
    codec::held(receipt.lease)
}

/// A word as `settle_receipts.lua` reads it.
fn said(word: &PullOutcome) -> Vec<u8> {
    let (kind, after, error, reason) = match word {
        PullOutcome::Finish => (1, Duration::ZERO, None, ""),
        PullOutcome::Retry { after, error } => (2, *after, error.as_deref(), ""),
        PullOutcome::Bury { reason, error } => (3, Duration::ZERO, error.as_deref(), reason.as_str()),
        PullOutcome::Release { after } => (4, *after, None, ""),
    };
    let error = truncated(error.unwrap_or_default(), MAX_ERROR);
    let reason = truncated(reason, codec::MOST_REASON);
    let length = |text: &str| u8::try_from(text.len()).unwrap_or(u8::MAX);
    let mut packed = vec![kind];
    packed.extend_from_slice(&six(millis_up(after)));
    packed.extend_from_slice(&[length(error), length(reason)]);
    packed.extend_from_slice(error.as_bytes());
    packed.extend_from_slice(reason.as_bytes());
    packed
}
