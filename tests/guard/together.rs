//! The last edges of a life in calls that do two of them: what was reserved is completed with the next reserve.

use ringback_core::contract::{Lateness, Lease, Settled};
use ringback_core::outcome::Outcome;

use crate::life::Life;

impl Life {
    /// Completes all of these and reserves so many at most.
    async fn exchange(&mut self, leases: Vec<Lease>, limit: usize) -> Vec<Lease> {
        let ask = self.ask(limit);
        let items = leases.into_iter().map(|lease| (lease, Outcome::Complete)).collect();
        let both = self.store.exchange(self.shard, items, &Lateness::default(), &ask).await;
        let (settled, reserved) = both.expect("the store answers");
        assert!(settled.iter().all(|s| *s == Settled::Applied), "every job was done");
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
