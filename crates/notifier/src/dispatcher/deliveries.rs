//! Begins deliveries of leased jobs, and gives jobs whose deliveries have not begun back to the store.

use std::sync::Arc;

use ringback_core::outcome::Outcome;
use ringback_core::store_types::Lease;
use tokio::time::Instant;
use tracing::debug;

use super::Dispatcher;
use crate::store_call::Settlement;

impl Dispatcher {
    pub(super) fn begin(&mut self, lane: String, lease: Lease) {
        let deliverer = Arc::clone(&self.deliverer);
        // In a box, since it is large and would be moved several times.
        self.deliveries.spawn(Box::pin(async move { (lane, deliverer.deliver(lease).await) }));
    }

    /// Gives back the jobs whose deliveries should have begun by now, and those whose cancel was requested.
    pub(super) fn give_back_what_waits(&mut self) {
        let cancelled = self.pending.take_jobs(&self.signals.take_cancels());
        self.give_back(cancelled);
        let now = Instant::now();
        if self.pending.late_at().is_some_and(|at| at <= now) {
            let late = self.pending.take_late(now);
            debug!(jobs = late.len(), "given back, because their receivers have become slow");
            self.give_back(late);
        }
    }

    /// Returns leased jobs whose deliveries have not begun to the store.
    pub(super) fn give_back(&mut self, jobs: Vec<(String, Lease)>) {
        for (lane, lease) in jobs {
            self.lanes.leave(&lane);
            self.settle_queue.add(Settlement { lease, outcome: Outcome::Return, note: None }, Instant::now());
        }
    }
}
