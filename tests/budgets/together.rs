//! Completes a life with exchanges: each call settles one batch of jobs and reserves the next.

use ringback_core::outcome::Outcome;
use ringback_core::store_types::{Lease, SettleResult};

use crate::life::Life;

impl Life {
    /// Completes these leases and reserves at most `limit` jobs in the same call. Returns the new leases.
    async fn exchange(&mut self, leases: Vec<Lease>, limit: usize) -> Vec<Lease> {
        let ask = self.ask(limit);
        let items = leases.into_iter().map(|lease| (lease, Outcome::Complete)).collect();
        let both = self.store.exchange(self.shard, items, &ask).await;
        let (settled, reserved) = both.expect("the store answers");
        assert!(settled.iter().all(|s| *s == SettleResult::Applied), "every job was done");
        reserved.leases
    }

    /// Promotes, reserves and completes `jobs` jobs that are due, `batch` at a time, each batch completed with the
    /// reserve of the next one.
    pub(crate) async fn finish_together(&mut self, jobs: usize, batch: usize) {
        let mut leases = Vec::new();
        for _ in 0..jobs / batch {
            assert_eq!(self.promote(batch).await, batch, "all jobs are due");
            leases = self.exchange(leases, batch).await;
            assert_eq!(leases.len(), batch, "all jobs are ready");
        }
        self.complete(leases).await;
    }
}
