//! Calls on pull jobs with the defaults that most cases need.

use std::sync::Mutex;
use std::sync::atomic::Ordering;

use ringback_core::job::{Callback, DEFAULT_TTR, JobKey, NewJob};
use ringback_core::store_types::{ExpiredLease, Pull, Pulled, PulledJob, Receipt, SettleResult};

use super::super::job_builders::{LONG, TOPIC};
use super::{SOON, Workbench, at_most};
use crate::prelude::*;

impl Workbench {
    /// Recovers until `count` leases of pull jobs have expired, and returns them. Different calls may return leases of
    /// different batches, some again and again.
    pub(crate) async fn expired_leases(&self, count: usize) -> Vec<ExpiredLease> {
        let all: Mutex<Vec<ExpiredLease>> = Mutex::default();
        eventually(SOON, &format!("{count} leases for pull run out"), async || {
            let recovered = self.store.recover(self.shard, &self.epoch, at_most(500)).await.expect("recover");
            let mut all = all.lock().expect("nobody has panicked with it");
            for expired in recovered.expired {
                if all.iter().all(|known| known.receipt != expired.receipt) {
                    all.push(expired);
                }
            }
            if all.len() < count { Err(all.len()) } else { Ok(()) }
        })
        .await;
        all.into_inner().expect("nobody has panicked with it")
    }

    /// A pull job of the usual topic that is due now.
    pub(crate) fn pull_job(&self, name: &str) -> NewJob {
        let mut job = self.job(name);
        job.delivery.callback = Callback::pull();
        job
    }

    /// Reserves at most `limit` pull jobs of the bench's topic.
    pub(crate) async fn pull(&self, limit: usize, ttr: Duration) -> Pulled {
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed);
        self.pull_as(sequence, limit, Some(ttr)).await
    }

    pub(crate) async fn pull_as(&self, sequence: u64, limit: usize, ttr: Option<Duration>) -> Pulled {
        self.pull_by(sequence, limit, ttr, DEFAULT_TTR).await
    }

    pub(crate) async fn pull_by(
        &self,
        sequence: u64,
        limit: usize,
        ttr: Option<Duration>,
        default_ttr: Duration,
    ) -> Pulled {
        let (topic, bits) = (TOPIC.parse().expect("a topic"), sequence.to_be_bytes());
        let ask = Pull { caller: "consumer", sequence, topic: &topic, limit, ttr, default_ttr, bits };
        self.store.pull(self.shard, &ask).await.expect("pull")
    }

    /// Reserves the next pull job of a topic. Panics if there is none.
    pub(crate) async fn pull_from(&self, topic: &str, ttr: Duration) -> PulledJob {
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed);
        let (topic, bits) = (topic.parse().expect("a topic"), sequence.to_be_bytes());
        let ask = Pull {
            caller: "consumer",
            sequence,
            topic: &topic,
            limit: 1,
            ttr: Some(ttr),
            default_ttr: DEFAULT_TTR,
            bits,
        };
        let pulled = self.store.pull(self.shard, &ask).await.expect("pull");
        pulled.jobs.into_iter().next().expect("a job is ready")
    }

    /// Reserves the next pull job, which must be this one.
    pub(crate) async fn pull_one(&self, key: &JobKey, ttr: Duration) -> PulledJob {
        let mut pulled = self.pull(1, ttr).await;
        // Only stale entries were met.
        while pulled.jobs.is_empty() && pulled.more {
            pulled = self.pull(1, ttr).await;
        }
        let job = pulled.jobs.pop().unwrap_or_else(|| panic!("{key} should be ready"));
        assert_eq!(job.key, *key);
        job
    }

    /// Submits a pull job and reserves it for [`LONG`].
    pub(crate) async fn pulled(&self, name: &str) -> PulledJob {
        let key = self.accept(self.pull_job(name)).await.key;
        self.pull_one(&key, LONG).await
    }

    pub(crate) async fn settle_receipt(&self, receipt: Receipt, outcome: Outcome) -> SettleResult {
        let settled = self.store.settle_receipts(self.shard, &[(receipt, outcome)]).await;
        settled.expect("settle").remove(0)
    }
}
