//! `Lanes`: decides how many callbacks may start in each lane, to each origin and of each tenant, by how many are in
//! flight here. A lane is a topic together with an origin, the unit of fairness. Origins and tenants are groups of
//! lanes with limits of their own: one receiver that hangs leaves room for the others whoever calls it, and one tenant
//! leaves room for the others wherever its jobs go. Pure.

mod failure_budgets;
mod full;
mod in_flight;
mod leasing_ahead;
mod paces;
mod shares;

use std::collections::BTreeSet;
use std::time::Duration;

use ringback_core::lane::{Lane, NO_TENANT};
use ringback_core::limits::MAX_BATCH;
use ringback_core::store_types::Lease;
use tokio::time::Instant;

use self::failure_budgets::FailureBudgets;
pub(crate) use self::full::FullLanes;
use self::in_flight::InFlight;
use self::paces::Paces;
use self::shares::part;
use crate::slow_calls::SlowCalls;

/// The most jobs of one reserve.
const MAX_RESERVE: usize = 128;
/// The most jobs of one call while there are several tenants: the calls of others wait for it.
const MAX_SHARED: usize = 16;
/// How often the failure budgets are refilled.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// The most lanes whose limits a reserve names, and the most origins and the most tenants. Each costs the store about a
/// microsecond.
const MAX_NAMED: usize = 256;
const MAX_NAMED_GROUPS: usize = 64;
/// The most origins that a reserve names because their receivers have too many slow calls.
const MAX_CROWDED: usize = 512;
/// Permits are scarce when less than this fraction of them is free.
const SCARCE: usize = 32;
/// Permits are plenty when at least this fraction of them is free.
const PLENTY: usize = 4;

/// How many free slots of a lane, an origin or a tenant justify a reserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refill {
    /// Half of the limit of a lane, and as many as the smallest reserve asks for of an origin or a tenant, so
    /// that busy ones are refilled in batches.
    Batch,
    /// One slot: for callbacks that take long.
    Any,
}

/// Returns the lane of a lease, under the name that the store uses.
pub(crate) fn lane_of(lease: &Lease) -> String {
    Lane::new(&lease.key.topic, lease.delivery.callback.origin()).name()
}

/// The limits of one reserve. Its permits count as used until it is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReserveLimits {
    /// The most jobs.
    pub(crate) limit: usize,
    /// The most jobs of a lane that `lanes` does not name.
    pub(crate) per_lane: usize,
    /// Lanes with another limit: a lower one, of which 0 leaves the lane out, or a higher one.
    pub(crate) lanes: Vec<(String, usize)>,
    /// The most jobs of any lane.
    pub(crate) most_per_lane: usize,
    /// The most jobs to an origin that `groups` does not name.
    pub(crate) per_origin: usize,
    /// The most jobs of a tenant that `groups` does not name.
    pub(crate) per_tenant: usize,
    /// Origins and tenants with a lower limit; 0 leaves their lanes out. Jobs without a tenant have a limit only here.
    pub(crate) groups: Vec<(String, usize)>,
    /// How many jobs the reserve may get of each tenant whose callbacks count when they begin.
    pub(crate) counted: Vec<(String, usize)>,
}

/// The permits of this notifier: callbacks in flight, outcomes that are not settled yet, and reserves
/// in flight.
pub(crate) struct Lanes {
    concurrency: usize,
    lane_concurrency: usize,
    /// Jobs that hold a permit, from the reserve until they are settled.
    permits: usize,
    /// Jobs that reserves in flight ask for.
    requested: usize,
    /// Callbacks in flight per lane, by its name, and those that are leased ahead.
    lanes: InFlight,
    /// How many jobs reserves in flight may bring of a lane that leases ahead.
    requested_ahead: usize,
    paces: Paces,
    /// Callbacks in flight per origin.
    origins: InFlight,
    /// Callbacks in flight per tenant. Those without one count as those of a tenant.
    tenants: InFlight,
    /// Whether there are tenants. Without them, jobs without a tenant have no limit but those of lanes and origins.
    has_tenants: bool,
    /// Origins whose receivers have too many slow calls: no job of them is reserved.
    crowded: BTreeSet<String>,
    /// How many callbacks of each tenant may still fail.
    failures: FailureBudgets,
    /// Whether several tenants have callbacks.
    has_several: bool,
    /// When that was last checked: the time at which callbacks begin, for the budgets.
    looked: Instant,
}

impl Lanes {
    pub(crate) fn new(concurrency: usize, lane_concurrency: usize) -> Self {
        Self {
            concurrency,
            lane_concurrency,
            permits: 0,
            requested: 0,
            lanes: InFlight::default(),
            requested_ahead: 0,
            paces: Paces::default(),
            origins: InFlight::default(),
            tenants: InFlight::default(),
            has_tenants: false,
            crowded: BTreeSet::new(),
            failures: FailureBudgets::default(),
            has_several: false,
            looked: Instant::now(),
        }
    }

    /// Returns the number of free permits.
    fn free(&self) -> usize {
        self.concurrency.saturating_sub(self.permits + self.requested)
    }

    /// Returns the number of jobs that hold a permit.
    pub(crate) fn permits(&self) -> usize {
        self.permits
    }

    /// Records that there are tenants, even if none has a callback in flight.
    pub(crate) fn expect_tenants(&mut self) {
        self.has_tenants = true;
    }

    /// Tells `slow` how many permits are free, and records which origins lead to receivers with too many slow calls.
    pub(crate) fn look_at(&mut self, slow: &SlowCalls) {
        self.crowded = slow.crowded(self.free(), self.origins.len() <= 1, Instant::now());
    }

    /// Refills the failure budgets, which opens lanes and tenants, and checks whether several tenants are active. Does
    /// nothing within a millisecond of the last time.
    pub(crate) fn reopen(&mut self, now: Instant) {
        if now < self.looked + LOOK_EVERY {
            return;
        }
        self.looked = now;
        self.failures.refill(now);
        self.has_several = self.has_tenants && self.failures.has_several(now);
    }

    /// Returns the most jobs of one store call, which is smaller while several tenants are active.
    pub(crate) fn max_batch(&self) -> usize {
        if self.has_several { MAX_SHARED } else { MAX_BATCH }
    }

    /// Records how a callback of the lane ended, and after which time, and charges a failure to the budget of its tenant,
    /// if there are tenants. `has_failed` is `None` if that is not known.
    pub(crate) fn ended(&mut self, lane: &str, has_failed: Option<bool>, took: Duration, now: Instant) {
        self.paces.ended(lane, has_failed, took, now);
        if self.has_tenants {
            self.failures.ended(groups_of(lane).1, lane, has_failed, now);
        }
    }

    /// Returns when the next lane or tenant that failures have closed opens; `None` if none is closed.
    pub(crate) fn opens(&self) -> Option<Instant> {
        self.failures.opens()
    }

    /// Takes permits for the next reserve and returns its limits; `None` if no permit is free, or no lane, origin or
    /// tenant could get one.
    pub(crate) fn request(&mut self, refill: Refill) -> Option<ReserveLimits> {
        let per_lane = part(self.lane_slots(0, 0));
        let (per_origin, per_tenant) = (self.part_of_group(&self.origins), self.part_of_group(&self.tenants));
        if per_lane == 0 || per_origin == 0 || (self.has_tenants && per_tenant == 0) {
            return None;
        }
        let limit = part(self.free()).min(MAX_RESERVE).min(self.max_batch());
        let lane_slots = |lane: &str, in_flight| {
            let ahead = self.ahead(lane, in_flight);
            (self.usable_lane_slots(in_flight, ahead, refill), self.lane_slots(in_flight, ahead))
        };
        let (per_lane, mut lanes) = self.lanes.lower_limits(per_lane, MAX_NAMED, lane_slots);
        let raised = self.raised_limits(per_lane, limit, refill);
        let most_per_lane = raised.iter().map(|(_, most)| *most).max().unwrap_or(per_lane);
        lanes.extend(raised);
        let named = lanes.len();
        if self.has_several {
            lower(&mut lanes, self.failures.lanes().take(MAX_NAMED.saturating_sub(named)), per_lane);
        }
        let (per_origin, mut groups) = self.group_limits(&self.origins, per_origin.min(limit), refill);
        groups.retain(|(origin, _)| !self.crowded.contains(origin));
        let crowded = self.crowded.iter().take(MAX_CROWDED);
        groups.extend(crowded.map(|origin| (origin.clone(), 0)));
        let (mut per_tenant, mut counted) = (per_tenant.min(limit), Vec::new());
        if self.has_tenants {
            let mut tenants;
            (per_tenant, tenants) = self.group_limits(&self.tenants, per_tenant, refill);
            if self.has_several {
                let failing = self.failures.tenants();
                counted.extend(failing.map(|(tenant, limit)| (tenant.clone(), limit.min(per_tenant))));
                counted.sort_unstable_by_key(|(_, limit)| *limit);
            }
            // Where more have a lower limit than can be named, those that are not have the lowest of theirs, but 1.
            if let Some((_, least)) = counted.get(MAX_NAMED_GROUPS) {
                per_tenant = per_tenant.min((*least).max(1));
            }
            let named = counted.iter().take(MAX_NAMED_GROUPS);
            lower(&mut tenants, named.map(|(tenant, limit)| (tenant, *limit)), per_tenant);
            if tenants.iter().all(|(tenant, _)| tenant != NO_TENANT) {
                groups.push((NO_TENANT.to_owned(), per_tenant));
            }
            groups.extend(tenants);
        }
        self.failures.requested(&counted);
        self.requested += limit;
        self.lanes.requested += per_lane;
        self.requested_ahead += most_per_lane;
        self.origins.requested += per_origin;
        self.tenants.requested += per_tenant;
        Some(ReserveLimits { limit, per_lane, lanes, most_per_lane, per_origin, per_tenant, groups, counted })
    }

    /// Returns how many callbacks may start in all, and of a lane.
    pub(crate) fn room(&self) -> (usize, impl Fn(&str) -> usize) {
        (self.free(), |lane| self.lane_slots(self.lanes.of(lane), 0))
    }

    /// Returns true if so few permits are free that using each at once would cause many small calls.
    pub(crate) fn is_scarce(&self) -> bool {
        self.free() < self.concurrency / SCARCE
    }

    /// Returns true if this notifier has room for due jobs: at least half of its permits are free.
    pub(crate) fn may_wait(&self) -> bool {
        2 * self.permits <= self.concurrency
    }

    /// Returns true if enough permits are free for outcomes to hold theirs a little longer.
    pub(crate) fn is_plenty(&self) -> bool {
        self.free() >= self.concurrency / PLENTY
    }

    /// Frees the permits that a reserve has taken, once it is answered.
    pub(crate) fn answered(&mut self, limits: &ReserveLimits) {
        self.failures.answered(&limits.counted);
        self.requested = self.requested.saturating_sub(limits.limit);
        self.lanes.requested = self.lanes.requested.saturating_sub(limits.per_lane);
        self.requested_ahead = self.requested_ahead.saturating_sub(limits.most_per_lane);
        self.origins.requested = self.origins.requested.saturating_sub(limits.per_origin);
        self.tenants.requested = self.tenants.requested.saturating_sub(limits.per_tenant);
    }

    /// Records that a callback of the lane starts. It holds a permit until it is settled.
    pub(crate) fn enter(&mut self, lane: &str) {
        self.permits += 1;
        self.lanes.enter(lane);
        let (origin, tenant) = groups_of(lane);
        self.origins.enter(origin);
        self.tenants.enter(tenant);
        self.has_tenants |= tenant != NO_TENANT;
        if self.has_tenants {
            self.failures.began(tenant, self.looked);
        }
    }

    /// Returns true if the free slots of a full lane, origin or tenant justify a reserve.
    pub(crate) fn is_open(&self, full: &str, refill: Refill) -> bool {
        let is_tenant_open = |tenant| {
            if self.has_several && self.failures.is_closed(tenant, None) {
                return false;
            }
            let is_limited = self.has_tenants || tenant != NO_TENANT;
            !is_limited || self.usable_group_slots(&self.tenants, self.tenants.of(tenant), refill) > 0
        };
        let is_origin_open = |origin| {
            let in_flight = self.origins.of(origin);
            !self.crowded.contains(origin) && self.usable_group_slots(&self.origins, in_flight, refill) > 0
        };
        match Lane::parse(full) {
            Some(lane) if self.has_several && self.failures.is_closed(lane.tenant(), Some(full)) => false,
            Some(lane) => {
                is_tenant_open(lane.tenant())
                    && is_origin_open(lane.origin)
                    && self.is_lane_open(full, refill)
            }
            None if full.starts_with(NO_TENANT) => is_tenant_open(full),
            None => is_origin_open(full),
        }
    }

    /// Records that a callback of the lane has ended, or will not begin. Its permit stays in use.
    pub(crate) fn leave(&mut self, lane: &str) {
        self.lanes.leave(lane);
        let (origin, tenant) = groups_of(lane);
        self.origins.leave(origin);
        self.tenants.leave(tenant);
    }

    /// Frees the permits of jobs that are settled or given up.
    pub(crate) fn settled(&mut self, jobs: usize) {
        self.permits = self.permits.saturating_sub(jobs);
    }
}

/// Lowers `limits` by those of `lower` that are below `other`, the limit of names that are not in `limits`.
fn lower<'a>(
    limits: &mut Vec<(String, usize)>,
    lower: impl Iterator<Item = (&'a String, usize)>,
    other: usize,
) {
    for (name, limit) in lower.filter(|(_, limit)| *limit < other) {
        match limits.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = limit.min(*known),
            None => limits.push((name.clone(), limit)),
        }
    }
}

/// Returns the origin and the tenant of a lane; an empty origin and [`NO_TENANT`] if the name is no lane.
fn groups_of(lane: &str) -> (&str, &str) {
    Lane::parse(lane).map_or(("", NO_TENANT), |lane| (lane.origin, lane.tenant()))
}

#[cfg(test)]
mod tests;
