//! The limits of groups of lanes in a reserve: of origins and of tenants.

use std::collections::HashMap;

use ringback_core::lane::{Lane, NO_TENANT};
use ringback_core::store_types::Reserve;

/// How many jobs origins and tenants may still give.
#[derive(Clone)]
pub(super) struct Groups {
    origin_limit: usize,
    tenant_limit: usize,
    left: HashMap<String, usize>,
}

impl From<&Reserve<'_>> for Groups {
    fn from(ask: &Reserve<'_>) -> Self {
        // No call gives more than its limit.
        let below = |limit| if limit < ask.limit { limit } else { usize::MAX };
        let mut left: HashMap<_, _> = ask.group_limits.iter().cloned().collect();
        left.entry(NO_TENANT.to_owned()).or_insert(usize::MAX);
        Self { origin_limit: below(ask.origin_limit), tenant_limit: below(ask.tenant_limit), left }
    }
}

impl Groups {
    /// Whether any origin or tenant may give no job.
    pub(super) fn has_throttled(&self) -> bool {
        self.origin_limit.min(self.tenant_limit) == 0 || self.left.values().any(|left| *left == 0)
    }

    /// Returns how many jobs a lane may give by its origin and its tenant, and the name of the one that allows fewer.
    pub(super) fn left<'a>(&self, lane: &'a str) -> (usize, &'a str) {
        let Some(lane) = Lane::parse(lane) else { return (usize::MAX, NO_TENANT) };
        let left = |group: &str, limit| self.left.get(group).copied().unwrap_or(limit);
        let (of_origin, of_tenant) =
            (left(lane.origin, self.origin_limit), left(lane.tenant(), self.tenant_limit));
        if of_tenant <= of_origin { (of_tenant, lane.tenant()) } else { (of_origin, lane.origin) }
    }

    /// Subtracts jobs that a lane has given from what its origin and its tenant may give.
    pub(super) fn take(&mut self, lane: &str, jobs: usize) {
        let Some(lane) = Lane::parse(lane) else { return };
        for (group, limit) in [(lane.origin, self.origin_limit), (lane.tenant(), self.tenant_limit)] {
            match self.left.get_mut(group) {
                Some(left) => *left = left.saturating_sub(jobs),
                None => drop(self.left.insert(group.to_owned(), limit.saturating_sub(jobs))),
            }
        }
    }
}
