//! Makes the transitions of a job's life on one shard of a store, as its carrier and its notifier would.

use std::time::Duration;

use ringback_core::job::NewJob;
use ringback_core::outcome::Outcome;
use ringback_core::state::State;
use ringback_core::store_types::{Epoch, Lease, Pass, PassLimits, Reserve, SettleResult, Shard, Waiting};
use ringback_store::Store;

const FLOOR: Duration = Duration::from_secs(5);

/// A prepared store of one shard.
pub(crate) struct Life {
    pub(crate) store: Store,
    pub(crate) shard: Shard,
    epoch: Epoch,
    sequence: u64,
}

impl Life {
    pub(crate) async fn of(store: Store) -> Self {
        store.prepare().await.expect("a private store is fit");
        let shard = store.shards().next().expect("a store has shards");
        let epoch = store.take_shard(shard, "guard").await.expect("the store answers");
        Self { store, shard, epoch, sequence: 0 }
    }

    /// Submits one batch of jobs that are not due yet.
    ///
    /// # Panics
    /// When jobs are due already: then they skip the state `delayed`, which is to be measured.
    pub(crate) async fn submit(&self, jobs: &[NewJob]) {
        let answers = self.store.submit(self.shard, jobs).await.expect("the store accepts");
        assert!(answers.iter().all(|a| a.job.state == State::Delayed), "jobs were due before they were in");
    }

    /// Promotes at most `limit` due jobs, and returns how many became ready.
    pub(crate) async fn promote(&self, limit: usize) -> usize {
        let limit = u32::try_from(limit).expect("a batch is small");
        match self
            .store
            .promote(self.shard, &self.epoch, PassLimits { jobs: limit, max_sleep: FLOOR, may_leave: false })
            .await
            .expect("the store answers")
        {
            Pass::Held { moved, .. } => moved as usize,
            Pass::Fenced | Pass::Left(_) => unreachable!("nobody else claims the shard, or waits"),
        }
    }

    /// The request of the next reserve, for at most `limit` jobs.
    pub(crate) fn ask(&mut self, limit: usize) -> Reserve<'static> {
        self.sequence += 1;
        Reserve {
            caller: "guard",
            sequence: self.sequence,
            limit,
            lane_limit: limit,
            lane_limits: Vec::new(),
            admitted: Vec::new(),
            origin_limit: usize::MAX,
            tenant_limit: usize::MAX,
            group_limits: Vec::new(),
            bits: [7; 8],
            waiting: Waiting::No,
            margin: Duration::from_secs(60),
        }
    }

    /// Reserves at most `limit` jobs.
    pub(crate) async fn take(&mut self, limit: usize) -> Vec<Lease> {
        let ask = self.ask(limit);
        self.store.reserve(self.shard, &ask).await.expect("the store answers").leases
    }

    pub(crate) async fn complete(&self, leases: Vec<Lease>) {
        let items = leases.into_iter().map(|lease| (lease, Outcome::Complete)).collect();
        let settled = self.store.settle(self.shard, items).await;
        let settled = settled.expect("the store answers");
        assert!(settled.iter().all(|s| *s == SettleResult::Applied), "every job was done");
    }

    /// Promotes, reserves and completes `jobs` jobs that are due, `batch` at a time.
    pub(crate) async fn finish(&mut self, jobs: usize, batch: usize) {
        for _ in 0..jobs / batch {
            assert_eq!(self.promote(batch).await, batch, "all jobs are due");
            let leases = self.take(batch).await;
            assert_eq!(leases.len(), batch, "all jobs are ready");
            self.complete(leases).await;
        }
    }
}
