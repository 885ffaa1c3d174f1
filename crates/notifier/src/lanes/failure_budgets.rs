//! Limits how many callbacks of a tenant may fail while several tenants are active: 100 a second, and one more for each
//! success. A failed attempt costs as much as one that succeeds, so a tenant with receivers that fail at once would
//! otherwise use up the time of all. First its failing lanes are closed for a while, so that its other receivers get
//! their callbacks, and all of its lanes if that is not enough. Then, and before its first success, its callbacks count
//! when they begin, because those that time out are known to have failed only after many more have begun. `budget` has
//! the budget of one tenant. Pure.

mod budget;

use std::collections::HashMap;

use tokio::time::Instant;

use self::budget::{ACTIVE, Budget, MOST};

/// The budgets of all tenants.
#[derive(Default)]
pub(super) struct FailureBudgets {
    tenants: HashMap<String, Budget>,
}

impl FailureBudgets {
    /// Records the beginning of a callback. It does not count if no other tenant is active.
    pub(super) fn began(&mut self, tenant: &str, now: Instant) {
        let is_alone = self.is_alone(tenant, now);
        let budget = self.budget(tenant, now);
        if !is_alone {
            budget.began();
        }
    }

    /// Records the end of a callback, and whether it has failed; `None` if that is not known. A failure does not count
    /// if no other tenant is active.
    pub(super) fn ended(&mut self, tenant: &str, lane: &str, has_failed: Option<bool>, now: Instant) {
        let is_alone = self.is_alone(tenant, now);
        let budget = self.budget(tenant, now);
        budget.refill(now);
        match has_failed {
            Some(true) if !is_alone => budget.failed(lane),
            Some(true) | None => budget.came_to_nothing(),
            Some(false) => budget.succeeded(lane),
        }
    }

    /// Whether no other tenant has had callbacks in the last 10 s.
    fn is_alone(&self, tenant: &str, now: Instant) -> bool {
        !self
            .tenants
            .iter()
            .any(|(name, other)| name != tenant && now.saturating_duration_since(other.seen) < ACTIVE)
    }

    fn budget(&mut self, tenant: &str, now: Instant) -> &mut Budget {
        // Most are known: no name is copied for them.
        if !self.tenants.contains_key(tenant) {
            self.tenants.insert(tenant.to_owned(), Budget::new(now));
        }
        let budget = self.tenants.get_mut(tenant).expect("it is there");
        budget.seen = budget.seen.max(now);
        budget
    }

    /// Refills all budgets, which opens what may open, and forgets tenants with a full budget that are not active.
    pub(super) fn refill(&mut self, now: Instant) {
        self.tenants.retain(|_, budget| {
            budget.refill(now);
            budget.left < MOST
                || budget.counted + budget.requested > 0
                || now.saturating_duration_since(budget.seen) < ACTIVE
        });
    }

    /// Whether several tenants had callbacks in the last 10 s.
    pub(super) fn has_several(&self, now: Instant) -> bool {
        let is_active = |budget: &&Budget| now.saturating_duration_since(budget.seen) < ACTIVE;
        self.tenants.values().filter(is_active).nth(1).is_some()
    }

    /// When the first closed lane or tenant opens; `None` if none is closed.
    pub(super) fn opens(&self) -> Option<Instant> {
        self.tenants.values().filter_map(Budget::opens).min()
    }

    /// The failing lanes of tenants whose callbacks count when they fail, and how many callbacks of each may start.
    pub(super) fn lanes(&self) -> impl Iterator<Item = (&String, usize)> {
        let some = self.tenants.values().filter(|budget| !budget.counts_begun());
        some.flat_map(|budget| {
            let limit = budget.limit();
            budget.lanes.iter().filter_map(move |lane| Some((lane, limit?)))
        })
    }

    /// The tenants whose callbacks count when they begin, and how many callbacks of each may begin.
    pub(super) fn tenants(&self) -> impl Iterator<Item = (&String, usize)> {
        let all = self.tenants.iter().filter(|(_, budget)| budget.counts_begun());
        all.map(|(tenant, budget)| (tenant, budget.batch()))
    }

    /// Counts the callbacks that a reserve may bring of each of these tenants, until [`Self::answered`].
    pub(super) fn requested(&mut self, limits: &[(String, usize)]) {
        self.change_requested(limits, usize::saturating_add);
    }

    pub(super) fn answered(&mut self, limits: &[(String, usize)]) {
        self.change_requested(limits, usize::saturating_sub);
    }

    fn change_requested(&mut self, limits: &[(String, usize)], change: fn(usize, usize) -> usize) {
        for (tenant, limit) in limits {
            if let Some(budget) = self.tenants.get_mut(tenant) {
                budget.requested = change(budget.requested, *limit);
            }
        }
    }

    pub(super) fn is_closed(&self, tenant: &str, lane: Option<&str>) -> bool {
        self.tenants.get(tenant).is_some_and(|budget| {
            if budget.counts_begun() {
                return budget.batch() == 0;
            }
            lane.is_some_and(|lane| budget.lanes.contains(lane)) && budget.limit() == Some(0)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::budget::MAX_LANES;
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn fail(failures: &mut FailureBudgets, lane: &str, times: usize, now: Instant) {
        for _ in 0..times {
            failures.ended("a", lane, Some(true), now);
        }
    }

    /// The budgets after a success of each of two tenants.
    fn with_another(now: Instant) -> FailureBudgets {
        let mut failures = FailureBudgets::default();
        failures.ended("b", "b", Some(false), now);
        failures.ended("a", "good", Some(false), now);
        failures
    }

    #[test]
    fn a_tenant_that_is_alone_may_fail_as_often_as_it_likes() {
        let (mut failures, now) = (FailureBudgets::default(), Instant::now());
        failures.ended("a", "good", Some(false), now);
        fail(&mut failures, "bad", 1_000, now);
        assert!(!failures.is_closed("a", Some("bad")) && failures.opens().is_none());
        failures.ended("b", "b", Some(false), now);
        fail(&mut failures, "bad", 100, now + 9 * SECOND);
        assert!(failures.is_closed("a", Some("bad")));
        let mut failures = with_another(now);
        fail(&mut failures, "bad", 1_000, now + ACTIVE);
        assert!(!failures.is_closed("a", Some("bad")), "the other one is idle");
    }

    #[test]
    fn lanes_that_fail_too_often_are_closed_for_a_while_and_no_others() {
        let now = Instant::now();
        let mut failures = with_another(now);
        fail(&mut failures, "bad", 99, now);
        assert!(!failures.is_closed("a", Some("bad")));
        assert_eq!(failures.lanes().collect::<Vec<_>>(), [(&"bad".to_owned(), 1)]);
        fail(&mut failures, "bad", 1, now);
        assert!(failures.is_closed("a", Some("bad")) && !failures.is_closed("a", Some("good")));
        assert!(!failures.is_closed("a", None) && failures.tenants().next().is_none());
        assert!(!failures.is_closed("b", Some("b")));
        assert_eq!(failures.opens(), Some(now + Duration::from_millis(80)));
        failures.refill(now + Duration::from_millis(79));
        assert!(failures.is_closed("a", Some("bad")));
        failures.refill(now + Duration::from_millis(81));
        assert!(!failures.is_closed("a", Some("bad")));
        assert_eq!(failures.lanes().collect::<Vec<_>>(), [(&"bad".to_owned(), 8)]);
        failures.refill(now + 2 * SECOND);
        assert!(failures.lanes().next().is_none() && failures.opens().is_none());
    }

    #[test]
    fn each_success_allows_a_failure() {
        let now = Instant::now();
        let mut failures = with_another(now);
        for _ in 0..1_000 {
            failures.ended("a", "bad", Some(true), now);
            failures.ended("a", "good", Some(false), now);
        }
        assert!(!failures.is_closed("a", Some("bad")));
        fail(&mut failures, "bad", 100, now);
        assert!(failures.is_closed("a", Some("bad")));
        failures.ended("a", "bad", Some(false), now);
        assert!(!failures.is_closed("a", Some("bad")), "it no longer fails");
    }

    #[test]
    fn a_tenant_whose_lanes_fail_on_is_closed_as_is_one_with_too_many_of_them() {
        let now = Instant::now();
        let mut failures = with_another(now);
        fail(&mut failures, "first", 1, now);
        for n in 0..MAX_LANES {
            let lane = n.to_string();
            fail(&mut failures, &lane, 1, now);
            failures.ended("a", "good", Some(false), now);
            assert!(!failures.is_closed("a", Some(&lane)), "{n} have failed, as many as succeeded");
        }
        fail(&mut failures, "new", 100, now);
        assert!(failures.is_closed("a", Some("good")) && failures.lanes().next().is_none());
        let mut failures = with_another(now);
        fail(&mut failures, "bad", 200, now);
        assert_eq!(
            (failures.lanes().count(), failures.tenants().collect::<Vec<_>>()),
            (0, vec![(&"a".to_owned(), 0)])
        );
        assert!(failures.is_closed("a", None) && failures.is_closed("a", Some("new")));
        failures.refill(now + 2 * SECOND);
        assert!(!failures.is_closed("a", None));
    }

    #[test]
    fn tenants_are_forgotten_once_all_is_well() {
        let now = Instant::now();
        let mut failures = with_another(now);
        fail(&mut failures, "bad", 500, now);
        failures.refill(now + ACTIVE);
        assert!(failures.tenants.is_empty());
    }

    #[test]
    fn callbacks_of_a_tenant_that_fails_on_count_when_they_begin() {
        let now = Instant::now();
        let mut failures = with_another(now);
        fail(&mut failures, "bad", 200, now);
        let at = |ms| now + Duration::from_millis(ms);
        let limit = |failures: &FailureBudgets| {
            failures.tenants().find(|(name, _)| *name == "a").map(|(_, limit)| limit)
        };
        // 8 may fail, and begin.
        failures.refill(at(1_081));
        assert_eq!(limit(&failures), Some(8));
        let asked = [("a".to_owned(), 8)];
        failures.requested(&asked);
        assert!(failures.is_closed("a", None), "a reserve asks for them");
        failures.answered(&asked);
        (0..8).for_each(|_| failures.began("a", at(1_081)));
        assert!(failures.is_closed("a", None) && limit(&failures) == Some(0));
        assert_eq!(failures.opens().map(|opens| (opens - now).as_millis()), Some(1_160));
        failures.refill(at(1_161));
        assert_eq!(limit(&failures), Some(8));
        // They do not count again when they fail. One that nothing is known of does not count, and a success allows one
        // more.
        (0..6).for_each(|_| failures.ended("a", "other", Some(true), at(1_161)));
        assert_eq!(limit(&failures), Some(8));
        failures.ended("a", "other", None, at(1_161));
        assert_eq!(limit(&failures), Some(9));
        failures.ended("a", "good", Some(false), at(1_161));
        assert_eq!(limit(&failures), Some(11));
        // That goes on as long as it fails, and some time longer.
        failures.refill(at(9_000));
        assert_eq!(limit(&failures), Some(100));
        failures.refill(at(11_200));
        assert_eq!(limit(&failures), None);
    }

    #[test]
    fn callbacks_count_when_they_begin_until_one_has_succeeded() {
        let now = Instant::now();
        let mut failures = FailureBudgets::default();
        failures.ended("b", "b", Some(false), now);
        let limit = |failures: &FailureBudgets| {
            failures.tenants().find(|(name, _)| *name == "a").map(|(_, limit)| limit)
        };
        (0..60).for_each(|_| failures.began("a", now));
        assert_eq!(limit(&failures), Some(40));
        (0..40).for_each(|_| failures.began("a", now));
        assert!(failures.is_closed("a", None));
        // Those that hang hold up others of the tenant for less than a second.
        failures.refill(now + SECOND);
        assert_eq!(limit(&failures), Some(100));
        (0..100).for_each(|_| failures.began("a", now + SECOND));
        failures.ended("a", "good", Some(false), now + SECOND);
        assert!(limit(&failures).is_none() && !failures.is_closed("a", None));
    }
}
