//! Begins deliveries of leased jobs, and gives jobs whose deliveries have not begun back to the store.

use std::sync::Arc;

use ringback_core::outcome::Outcome;
use ringback_core::store_types::{Lease, Shard};
use tokio::time::{Instant, sleep_until};
use tracing::debug;

use super::Dispatcher;
use crate::deliverer::Delivered;
use crate::flow::Place;
use crate::lanes::lane_of;
use crate::store_call::Settlement;

/// A delivery that has ended.
pub(super) struct Delivery {
    pub(super) lane: String,
    /// The place that it had, if its lane is limited.
    pub(super) place: Option<Place>,
    pub(super) delivered: Delivered,
}

impl Dispatcher {
    /// Starts the deliveries of the jobs that a reserve has brought, or keeps those waiting that may not begin yet.
    pub(super) fn start(
        &mut self,
        shard: Shard,
        leases: Vec<Lease>,
        admitted: &[(String, usize)],
        now: Instant,
    ) {
        for lease in leases {
            let lane = lane_of(&lease);
            self.lanes.enter(&lane);
            if self.flow.needs_place(&lane, shard, admitted) {
                self.begin_limited(lane, lease);
            } else if self.lanes.may_begin(&lane, self.pending.of(&lane)) {
                self.begin(lane, lease, None);
            } else if self.shutdown.is_stopping() {
                self.give_back(vec![(lane, lease)]);
            } else {
                self.pending.add(lane, lease, now);
            }
        }
    }

    /// Begins a delivery, at the time of its place if its lane is limited.
    pub(super) fn begin(&mut self, lane: String, lease: Lease, place: Option<Place>) {
        let deliverer = Arc::clone(&self.deliverer);
        // In a box, since it is large and would be moved several times.
        self.deliveries.spawn(Box::pin(async move {
            if let Some(place) = place {
                sleep_until(place.begin_at).await;
            }
            Delivery { lane, place, delivered: deliverer.deliver(lease).await }
        }));
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
