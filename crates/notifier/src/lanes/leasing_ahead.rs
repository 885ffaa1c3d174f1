//! How many jobs of a lane are leased ahead of those in flight, and which of them may begin.

use super::{Lanes, MAX_NAMED, Refill};

impl Lanes {
    /// Whether a callback of the lane may begin, if `waiting` of its jobs wait for that: fewer than `lane_concurrency` are
    /// in flight, which the job itself counts for.
    pub(crate) fn may_begin(&self, lane: &str, waiting: usize) -> bool {
        self.lanes.of(lane) <= self.lane_concurrency + waiting
    }

    /// Returns the slots of a lane beyond `lane_concurrency`, for jobs that are leased ahead, so that its next callbacks
    /// need not wait for a reserve. 0 unless half of its places are taken and its receiver is quick; and while several
    /// tenants are active, whose calls are small.
    pub(super) fn ahead(&self, lane: &str, in_flight: usize) -> usize {
        let is_busy = 2 * in_flight >= self.lane_concurrency && !self.has_several;
        if is_busy { self.paces.ahead(lane, self.lane_concurrency, self.looked) } else { 0 }
    }

    /// Returns the lanes that lease ahead and whose limit is higher than the one of each lane. They are few, because half of
    /// their places are taken.
    pub(super) fn raised_limits(
        &self,
        per_lane: usize,
        limit: usize,
        refill: Refill,
    ) -> Vec<(String, usize)> {
        let busy = self.lanes.with(self.lane_concurrency.div_ceil(2));
        let raised = busy.filter_map(|(lane, in_flight)| {
            let ahead = self.ahead(lane, in_flight);
            let most = self.usable_lane_slots(in_flight, ahead, refill).min(limit);
            (ahead > 0 && most > per_lane).then(|| (lane.clone(), most))
        });
        raised.take(MAX_NAMED).collect()
    }

    /// Whether the free slots of a lane justify a reserve.
    pub(super) fn is_lane_open(&self, lane: &str, refill: Refill) -> bool {
        let in_flight = self.lanes.of(lane);
        self.usable_lane_slots(in_flight, self.ahead(lane, in_flight), refill) > 0
    }
}
