//! The shares of the permits: how many jobs a lane, an origin or a tenant may have more of, by what the others leave.

use super::in_flight::InFlight;
use super::{Lanes, MAX_NAMED_GROUPS, Refill};

/// A reserve asks for one of this many parts of the free permits, so that several shards can be asked
/// at the same time.
const PARTS: usize = 2;
/// The least number of jobs that a reserve asks for, unless fewer permits are free.
const MIN_RESERVE: usize = 16;
/// Fewer origins or tenants share a reserve so that each may need most of it.
const FEW_GROUPS: usize = 4;

impl Lanes {
    /// Returns how many more jobs may be leased of a lane that has `in_flight` in flight and may lease `ahead` of them. The
    /// limit of a lane is `lane_concurrency` with those ahead, and at most half of the permits that other lanes leave
    /// free, so that a few lanes with slow receivers never use all permits.
    pub(super) fn lane_slots(&self, in_flight: usize, ahead: usize) -> usize {
        let fair = ((self.free() + in_flight) / 2).max(1);
        let requested = if ahead > 0 { self.requested_ahead } else { self.lanes.requested };
        let limit = fair.min(self.lane_concurrency + ahead);
        limit.saturating_sub(in_flight + requested).min(self.free())
    }

    /// Returns how many more callbacks may start of one of these origins or tenants that has `in_flight` in flight: at
    /// most half of the permits that others leave free, or seven eighths while no more than one has callbacks in
    /// flight.
    pub(super) fn group_slots(&self, groups: &InFlight, in_flight: usize) -> usize {
        let left = self.free() + in_flight;
        let is_alone = groups.len() <= 1;
        let fair = if is_alone { left - left / 8 } else { left / 2 };
        fair.max(1).saturating_sub(in_flight + groups.requested).min(self.free())
    }

    /// Returns the free slots of a lane if they justify a reserve, else 0. In a narrow lane any slot
    /// does.
    pub(super) fn usable_lane_slots(&self, in_flight: usize, ahead: usize, refill: Refill) -> usize {
        let free = self.lane_slots(in_flight, ahead);
        usable(free, (free + in_flight) / 2, refill)
    }

    /// Returns the free slots of an origin or a tenant if they justify a reserve, else 0.
    pub(super) fn usable_group_slots(&self, groups: &InFlight, in_flight: usize, refill: Refill) -> usize {
        let free = self.group_slots(groups, in_flight);
        usable(free, ((free + in_flight) / 2).min(MIN_RESERVE), refill)
    }

    /// Returns how many jobs a reserve may get of one of these origins or tenants that has nothing in flight. The
    /// number counts as used for each of them until the answer comes, so it is smaller where there are many.
    pub(super) fn part_of_group(&self, groups: &InFlight) -> usize {
        let free = self.group_slots(groups, 0);
        part(if groups.len() < FEW_GROUPS { free } else { free.div_ceil(2) })
    }

    /// Returns the common limit of these origins or tenants, and those whose limit is lower.
    pub(super) fn group_limits(
        &self,
        groups: &InFlight,
        limit: usize,
        refill: Refill,
    ) -> (usize, Vec<(String, usize)>) {
        let slots = |_: &str, in_flight| {
            (self.usable_group_slots(groups, in_flight, refill), self.group_slots(groups, in_flight))
        };
        groups.lower_limits(limit, MAX_NAMED_GROUPS, slots)
    }
}

fn usable(free: usize, batch: usize, refill: Refill) -> usize {
    match refill {
        Refill::Batch if free < batch => 0,
        Refill::Batch | Refill::Any => free,
    }
}

/// Returns the part of the free permits or slots that one reserve asks for.
pub(super) fn part(left: usize) -> usize {
    left.div_ceil(PARTS).max(MIN_RESERVE).min(left)
}
