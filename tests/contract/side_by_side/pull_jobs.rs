//! Pull jobs on two stores, side by side: reserves, settles and renewals, also repeated and stale, and expired leases.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use ringback_core::clock::Timestamp;
use ringback_core::job::{Callback, DEFAULT_TTR};
use ringback_core::limits::MAX_RENEWED;
use ringback_core::outcome::{LastAttempt, Outcome, Reason};
use ringback_core::store_types::{Pass, Pull, Pulled, PulledJob, Receipt, RetryContext, Shard};

use super::{APART, NewJob, Pair, RandomOutcome, TOPICS, topic_of};
use crate::contract::job_builders::{BRIEFEST, LONG, With, ms};
use crate::contract::workbench::{at_most, now, until};

/// The same job reserved by a consumer, of each store.
pub(crate) type ReservedPair = [PulledJob; 2];

/// How long a consumer has what it takes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ttr {
    Own,
    Brief,
    Long,
}

/// Whether a name is that of a pull job: a third of the names are.
pub(crate) const fn is_pull(number: usize) -> bool {
    number.is_multiple_of(3)
}

/// A pull job if the id ends with `p`, else a push job. All push jobs and, if `brief`, pull jobs get brief timeouts.
pub(crate) fn push_or_pull(mut job: NewJob, brief: bool) -> NewJob {
    let is_pull = job.key.id.as_str().ends_with('p');
    if is_pull {
        job.delivery.callback = Callback::pull();
    }
    match (brief, is_pull) {
        (true, _) => job.timeout(BRIEFEST[0]),
        (false, true) => job,
        (false, false) => job.timeout(BRIEFEST[1]),
    }
}

/// Copies the times of Redis' failed attempt to that of the other store, if both were read from the stores' clocks:
/// failures of consumers, which have no status.
pub(crate) fn align(redis: &LastAttempt, memory: &mut LastAttempt, apart: Duration) {
    let is_close = redis.at.plus(apart) >= memory.at && memory.at.plus(apart) >= redis.at;
    if redis.status.is_none() && is_close && redis.duration.abs_diff(memory.duration) < apart {
        (memory.at, memory.duration) = (redis.at, redis.duration);
    }
}

impl Pair {
    pub(crate) async fn pull(&mut self, shard: usize, topic: usize, ttr: Ttr, times: u32) {
        self.sequence += 1;
        let topic = topic_of(TOPICS[topic]);
        let ttr = match ttr {
            Ttr::Own => None,
            Ttr::Brief => Some(BRIEFEST[0]),
            Ttr::Long => Some(LONG),
        };
        let (sequence, bits) = (self.sequence, self.sequence.to_be_bytes());
        let ask = Pull {
            caller: "consumer",
            sequence,
            topic: &topic,
            limit: 500,
            ttr,
            default_ttr: DEFAULT_TTR,
            bits,
        };
        let shard = self.stores[0].shards().nth(shard).expect("one of the shards");
        for _ in 0..times {
            let redis = self.stores[0].pull(shard, &ask).await.expect("pull");
            let memory = self.stores[1].pull(shard, &ask).await.expect("pull");
            self.expired_by = now().plus(BRIEFEST[1] + ms(4));
            assert_eq!(redis.more, memory.more, "{}", self.at);
            self.hold(redis, memory);
        }
    }

    fn hold(&mut self, redis: Pulled, memory: Pulled) {
        let by_name = |pulled: Pulled| -> BTreeMap<String, PulledJob> {
            pulled.jobs.into_iter().map(|job| (job.key.to_string(), job)).collect()
        };
        let (redis, memory) = (by_name(redis), by_name(memory));
        assert!(redis.keys().eq(memory.keys()), "{}: {redis:?}, {memory:?}", self.at);
        for (redis, memory) in redis.into_values().zip(memory.into_values()) {
            let brief = |job: &PulledJob| (job.attempt, job.delivery.clone());
            assert_eq!(brief(&redis), brief(&memory), "{}: {}", self.at, redis.key);
            self.held.push([redis, memory]);
        }
    }

    /// Settles by some of the receipts so far. Half of these are kept and used again.
    pub(crate) async fn settle_receipts(&mut self, hands: &[(usize, RandomOutcome)]) {
        let mut outcomes: BTreeMap<Shard, [Vec<(Receipt, Outcome)>; 2]> = BTreeMap::new();
        for (hand, random) in hands {
            let Some(at) = hand.checked_rem(self.held.len()) else { break };
            let receipts = self.held[at].clone().map(|job| job.receipt);
            if hand % 2 == 0 {
                self.held.swap_remove(at);
            }
            let outcome = self.outcome(*random);
            let of_shard = outcomes.entry(receipts[0].shard).or_default();
            for (list, receipt) in of_shard.iter_mut().zip(receipts) {
                list.push((receipt, outcome.clone()));
            }
        }
        for (shard, [redis, memory]) in outcomes {
            let redis = self.stores[0].settle_receipts(shard, &redis).await.expect("settle");
            let memory = self.stores[1].settle_receipts(shard, &memory).await.expect("settle");
            self.moment();
            assert_eq!(redis, memory, "{}", self.at);
        }
    }

    fn outcome(&mut self, random: RandomOutcome) -> Outcome {
        match random {
            RandomOutcome::Complete => Outcome::Complete,
            RandomOutcome::Retry(wait) => Outcome::Retry {
                after: self.delay(wait),
                last: LastAttempt::by_consumer(Some("out of paper".to_owned())),
            },
            RandomOutcome::Bury => Outcome::Bury {
                reason: Reason::Custom("unwanted".to_owned()),
                last: LastAttempt::by_consumer(None),
            },
            RandomOutcome::Release(wait) => Outcome::Release { after: self.delay(wait) },
            // Only notifiers return jobs.
            RandomOutcome::Return => Outcome::Release { after: Duration::ZERO },
        }
    }

    /// Renews a lease by its receipt on both stores. Compares the results, and what the job's next retry needs before
    /// that.
    pub(crate) async fn renew_receipt(&mut self, hand: usize) {
        let Some(at) = hand.checked_rem(self.held.len()) else { return };
        let [redis, memory] = self.held[at].clone().map(|job| job.receipt);
        let tries = [
            self.stores[0].lease_info(&redis).await.expect("held"),
            self.stores[1].lease_info(&memory).await.expect("held"),
        ];
        let [redis_tries, memory_tries] = tries;
        assert_eq!(redis_tries.is_some(), memory_tries.is_some(), "{}", self.at);
        redis_tries.iter().zip(&memory_tries).for_each(|(one, other)| self.same_tries(one, other));
        let redis = self.stores[0].renew_receipt(&redis, LONG, MAX_RENEWED).await.expect("renew");
        let memory = self.stores[1].renew_receipt(&memory, LONG, MAX_RENEWED).await.expect("renew");
        assert_eq!(redis.is_some(), memory.is_some(), "{}", self.at);
    }

    /// Recovers each shard of both stores, settles expired leases as a carrier does, and compares them.
    pub(crate) async fn recover(&mut self, limit: u32) {
        until(self.expired_by).await;
        let next = |pass: Pass| matches!(pass, Pass::Held { next_lease: Some(d), .. } if d.is_zero());
        let expired: RefCell<[BTreeMap<String, RetryContext>; 2]> = RefCell::default();
        let kind = self.stores[0].kind();
        let call = async |store: &super::Store, shard, epoch: &super::Epoch| {
            let recovered = store.recover(shard, epoch, at_most(limit)).await.expect("recover");
            let failed = Outcome::Retry {
                after: Duration::ZERO,
                last: LastAttempt::by_consumer(Some("lease ran out".to_owned())),
            };
            let outcomes: Vec<_> =
                recovered.expired.iter().map(|expired| (expired.receipt, failed.clone())).collect();
            if !outcomes.is_empty() {
                let settled = store.settle_expired(shard, &outcomes).await.expect("settle");
                assert!(
                    settled.iter().all(|settled| *settled == super::SettleResult::Applied),
                    "{settled:?}"
                );
            }
            let mut all = expired.borrow_mut();
            let mine = &mut all[usize::from(store.kind() != kind)];
            // The job's place is the same in both stores; the lease is not.
            mine.extend(
                recovered
                    .expired
                    .into_iter()
                    .map(|job| (job.receipt.to_string()[..18].to_owned(), job.tries)),
            );
            recovered.pass
        };
        self.passes(call, next).await;
        let [redis, memory] = expired.into_inner();
        assert!(redis.keys().eq(memory.keys()), "{}: {redis:?}, {memory:?}", self.at);
        redis.values().zip(memory.values()).for_each(|(one, other)| self.same_tries(one, other));
        self.moment();
    }

    /// Asserts that both retry contexts are the same, except for times, which may differ by [`APART`].
    fn same_tries(&self, redis: &RetryContext, memory: &RetryContext) {
        let times = [(Some(redis.first_due), Some(memory.first_due)), (redis.expires, memory.expires)];
        for (one, other) in times {
            let is_near = |a: Timestamp, b: Timestamp| a.plus(APART) >= b && b.plus(APART) >= a;
            let is_same = one.zip(other).map_or(one == other, |(one, other)| is_near(one, other));
            assert!(is_same, "{}: {one:?}, {other:?}", self.at);
        }
        let RetryContext { first_due, expires, .. } = *redis;
        let aligned = RetryContext { first_due, expires, ..memory.clone() };
        assert_eq!(*redis, aligned, "{}", self.at);
    }
}
