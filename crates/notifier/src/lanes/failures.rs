//! How many of its callbacks may fail: while several tenants have callbacks, one whose callbacks fail has so many a second
//! here, and each success allows one more. A failed attempt costs as much as one that succeeds, so a tenant with receivers
//! that fail at once would else use up the time of all. First its lanes that fail are closed for a while, so that its other
//! receivers get their callbacks, and all of its lanes if that is not enough. Then, and before its first success, its
//! callbacks in flight count as if they had failed, because those that time out are known to have failed only when many more
//! have started. Pure.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use tokio::time::Instant;

use super::held::Held;

/// How many callbacks of a tenant may fail a second.
const RATE: f64 = 100.0;
/// How many may fail at once, and after how many more all lanes of the tenant are closed.
const MOST: f64 = 100.0;
/// What is closed opens when so many may fail again, so that callbacks come in batches.
const BATCH: f64 = 8.0;
/// How many failing lanes of a tenant are known. With more of them all of its lanes are closed.
const MAX_LANES: usize = 256;
/// How long a tenant counts as one of several after a callback.
const ACTIVE: Duration = Duration::from_secs(10);

/// What failures leave to each tenant.
#[derive(Default)]
pub(super) struct Failures {
    tenants: HashMap<String, Budget>,
}

struct Budget {
    /// How many callbacks may fail; less than 0 if more have failed.
    left: f64,
    at: Instant,
    /// When a callback last began or ended.
    seen: Instant,
    state: State,
    /// The lanes that have failed since all was well.
    lanes: BTreeSet<String>,
    /// Whether they failed on when they were closed, or more have failed than are known: all lanes of the tenant are closed
    /// with them.
    fails_on: bool,
    /// When that was last so.
    failed_on: Instant,
    /// Whether a callback has succeeded.
    has_succeeded: bool,
    /// How many of its callbacks reserves in flight ask for.
    requested: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// Closed: the lanes that fail, or all of them.
    Closed,
}

impl Budget {
    fn new(now: Instant) -> Self {
        Self {
            left: MOST,
            at: now,
            seen: now,
            state: State::Open,
            lanes: BTreeSet::new(),
            fails_on: false,
            failed_on: now,
            has_succeeded: false,
            requested: 0,
        }
    }

    fn refill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        (self.left, self.at) = ((self.left + RATE * passed).min(MOST), now);
        if self.state == State::Closed && self.left >= BATCH {
            self.state = State::Open;
        }
        if self.left >= MOST {
            self.lanes.clear();
            self.fails_on &= now.saturating_duration_since(self.failed_on) < ACTIVE;
        }
    }

    fn failed(&mut self, lane: &str) {
        self.left -= 1.0;
        if !self.lanes.contains(lane) {
            if self.lanes.len() < MAX_LANES {
                self.lanes.insert(lane.to_owned());
            } else {
                self.fails_on = true;
            }
        }
        if self.left <= 0.0 {
            self.state = State::Closed;
        }
        self.fails_on |= self.left <= -MOST;
        if self.fails_on {
            self.failed_on = self.at;
        }
    }

    fn succeeded(&mut self, lane: &str) {
        self.has_succeeded = true;
        self.left = (self.left + 1.0).min(MOST);
        self.lanes.remove(lane);
    }

    /// How many callbacks may start of what has failed; `None` for any number.
    fn limit(&self) -> Option<usize> {
        match self.state {
            State::Closed => Some(0),
            State::Open if self.left < MOST => Some((self.left as usize).max(1)),
            State::Open => None,
        }
    }

    /// How many more callbacks may start, of any lane, if these are in flight.
    fn left_beside(&self, held: usize) -> f64 {
        self.left - (held + self.requested) as f64
    }

    /// How many may start with the next reserve, if those that have begun count as failed.
    fn batch_beside(&self, held: usize) -> usize {
        let left = self.left_beside(held);
        if left < BATCH { 0 } else { left as usize }
    }

    /// Whether callbacks in flight count as failed.
    fn counts_begun(&self) -> bool {
        self.fails_on || !self.has_succeeded
    }

    fn opens(&self, held: usize) -> Option<Instant> {
        let left = if self.counts_begun() { self.left_beside(held) } else { self.left };
        let is_closed = if self.counts_begun() { left < BATCH } else { self.state == State::Closed };
        let missing = (BATCH - left).max(0.0) / RATE;
        is_closed.then(|| self.at + Duration::from_secs_f64(missing))
    }
}

impl Failures {
    /// Records the beginning of a callback.
    pub(super) fn began(&mut self, tenant: &str, now: Instant) {
        match self.tenants.get_mut(tenant) {
            Some(budget) => budget.seen = budget.seen.max(now),
            None => drop(self.tenants.insert(tenant.to_owned(), Budget::new(now))),
        }
    }

    /// Records the end of a callback.
    pub(super) fn ended(&mut self, tenant: &str, lane: &str, has_failed: bool, now: Instant) {
        if !self.tenants.contains_key(tenant) {
            self.tenants.insert(tenant.to_owned(), Budget::new(now));
        }
        let is_alone = !self
            .tenants
            .iter()
            .any(|(name, other)| name != tenant && now.saturating_duration_since(other.seen) < ACTIVE);
        let Some(budget) = self.tenants.get_mut(tenant) else { return };
        budget.seen = budget.seen.max(now);
        budget.refill(now);
        if !has_failed {
            budget.succeeded(lane);
        } else if !is_alone {
            budget.failed(lane);
        }
    }

    /// Opens what may open by now.
    pub(super) fn refill(&mut self, now: Instant) {
        self.tenants.retain(|_, budget| {
            budget.refill(now);
            budget.left < MOST || now.saturating_duration_since(budget.seen) < ACTIVE
        });
    }

    /// Whether there were callbacks of several tenants lately.
    pub(super) fn has_several(&self, now: Instant) -> bool {
        let is_active = |budget: &&Budget| now.saturating_duration_since(budget.seen) < ACTIVE;
        self.tenants.values().filter(is_active).nth(1).is_some()
    }

    /// When something opens that is closed, as far as no callback ends before. `held` is what tenants have in flight.
    pub(super) fn opens(&self, held: &Held) -> Option<Instant> {
        self.tenants.iter().filter_map(|(tenant, budget)| budget.opens(held.of(tenant))).min()
    }

    /// The lanes that have failed, and how many callbacks of each may start.
    pub(super) fn lanes(&self) -> impl Iterator<Item = (&String, usize)> {
        let some = self.tenants.values().filter(|budget| !budget.counts_begun());
        some.flat_map(|budget| {
            let limit = budget.limit();
            budget.lanes.iter().filter_map(move |lane| Some((lane, limit?)))
        })
    }

    /// The tenants whose callbacks in flight count as failed, and how many more of each may start.
    pub(super) fn tenants(&self, held: &Held) -> impl Iterator<Item = (&String, usize)> {
        let all = self.tenants.iter().filter(|(_, budget)| budget.counts_begun());
        all.map(|(tenant, budget)| (tenant, budget.batch_beside(held.of(tenant))))
    }

    /// A reserve asks for so many callbacks of each of these tenants.
    pub(super) fn requested(&mut self, limits: &[(String, usize)]) {
        self.change_requested(limits, usize::saturating_add);
    }

    /// It was answered.
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

    /// Whether a lane of a tenant is closed, or all of its lanes.
    pub(super) fn is_closed(&self, tenant: &str, lane: Option<&str>, held: &Held) -> bool {
        self.tenants.get(tenant).is_some_and(|budget| {
            if budget.counts_begun() {
                return budget.batch_beside(held.of(tenant)) == 0;
            }
            lane.is_some_and(|lane| budget.lanes.contains(lane)) && budget.limit() == Some(0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn fail(failures: &mut Failures, lane: &str, times: usize, now: Instant) {
        for _ in 0..times {
            failures.ended("a", lane, true, now);
        }
    }

    fn is_closed(failures: &Failures, tenant: &str, lane: Option<&str>) -> bool {
        failures.is_closed(tenant, lane, &Held::default())
    }

    /// Two tenants with a success each.
    fn with_another(now: Instant) -> Failures {
        let mut failures = Failures::default();
        failures.ended("b", "b", false, now);
        failures.ended("a", "good", false, now);
        failures
    }

    #[test]
    fn a_tenant_that_is_alone_may_fail_as_often_as_it_likes() {
        let (mut failures, now) = (Failures::default(), Instant::now());
        failures.ended("a", "good", false, now);
        fail(&mut failures, "bad", 1_000, now);
        assert!(!is_closed(&failures, "a", Some("bad")) && failures.opens(&Held::default()).is_none());
        failures.ended("b", "b", false, now);
        fail(&mut failures, "bad", 100, now + 9 * SECOND);
        assert!(is_closed(&failures, "a", Some("bad")));
        let mut failures = with_another(now);
        fail(&mut failures, "bad", 1_000, now + ACTIVE);
        assert!(!is_closed(&failures, "a", Some("bad")), "the other one is idle");
    }

    #[test]
    fn lanes_that_fail_too_often_are_closed_for_a_while_and_no_others() {
        let now = Instant::now();
        let mut failures = with_another(now);
        fail(&mut failures, "bad", 99, now);
        assert!(!is_closed(&failures, "a", Some("bad")));
        assert_eq!(failures.lanes().collect::<Vec<_>>(), [(&"bad".to_owned(), 1)]);
        fail(&mut failures, "bad", 1, now);
        assert!(is_closed(&failures, "a", Some("bad")) && !is_closed(&failures, "a", Some("good")));
        assert!(!is_closed(&failures, "a", None) && failures.tenants(&Held::default()).next().is_none());
        assert!(!is_closed(&failures, "b", Some("b")));
        assert_eq!(failures.opens(&Held::default()), Some(now + Duration::from_millis(80)));
        failures.refill(now + Duration::from_millis(79));
        assert!(is_closed(&failures, "a", Some("bad")));
        failures.refill(now + Duration::from_millis(81));
        assert!(!is_closed(&failures, "a", Some("bad")));
        assert_eq!(failures.lanes().collect::<Vec<_>>(), [(&"bad".to_owned(), 8)]);
        failures.refill(now + 2 * SECOND);
        assert!(failures.lanes().next().is_none() && failures.opens(&Held::default()).is_none());
    }

    #[test]
    fn each_success_allows_a_failure() {
        let now = Instant::now();
        let mut failures = with_another(now);
        for _ in 0..1_000 {
            failures.ended("a", "bad", true, now);
            failures.ended("a", "good", false, now);
        }
        assert!(!is_closed(&failures, "a", Some("bad")));
        fail(&mut failures, "bad", 100, now);
        assert!(is_closed(&failures, "a", Some("bad")));
        failures.ended("a", "bad", false, now);
        assert!(!is_closed(&failures, "a", Some("bad")), "it no longer fails");
    }

    #[test]
    fn a_tenant_whose_lanes_fail_on_is_closed_as_is_one_with_too_many_of_them() {
        let now = Instant::now();
        let mut failures = with_another(now);
        fail(&mut failures, "first", 1, now);
        for n in 0..MAX_LANES {
            let lane = n.to_string();
            fail(&mut failures, &lane, 1, now);
            failures.ended("a", "good", false, now);
            assert!(!is_closed(&failures, "a", Some(&lane)), "{n} have failed, as many as succeeded");
        }
        fail(&mut failures, "new", 100, now);
        assert!(is_closed(&failures, "a", Some("good")) && failures.lanes().next().is_none());
        let mut failures = with_another(now);
        fail(&mut failures, "bad", 200, now);
        assert_eq!(
            (failures.lanes().count(), failures.tenants(&Held::default()).collect::<Vec<_>>()),
            (0, vec![(&"a".to_owned(), 0)])
        );
        assert!(is_closed(&failures, "a", None) && is_closed(&failures, "a", Some("new")));
        failures.refill(now + 2 * SECOND);
        assert!(!is_closed(&failures, "a", None));
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
    fn callbacks_in_flight_of_a_tenant_that_fails_on_count_as_failed() {
        let now = Instant::now();
        let (mut failures, mut held) = (with_another(now), Held::default());
        fail(&mut failures, "bad", 200, now);
        let at = |ms| now + Duration::from_millis(ms);
        let limit = |failures: &Failures, held: &Held| failures.tenants(held).next().map(|(_, limit)| limit);
        // 8 may fail, and start.
        failures.refill(at(1_081));
        assert_eq!(limit(&failures, &held), Some(8));
        let asked = [("a".to_owned(), 8)];
        failures.requested(&asked);
        assert!(failures.is_closed("a", None, &held), "a reserve asks for them");
        failures.answered(&asked);
        (0..8).for_each(|_| held.enter("a"));
        assert!(failures.is_closed("a", None, &held) && limit(&failures, &held) == Some(0));
        assert_eq!(failures.opens(&held).map(|opens| opens - now).map(|ms| ms.as_millis()), Some(1_160));
        failures.refill(at(1_161));
        assert_eq!(limit(&failures, &held), Some(8));
        // Their failures take what they had already.
        (0..8).for_each(|_| held.leave("a"));
        fail(&mut failures, "other", 8, at(1_161));
        assert_eq!(limit(&failures, &held), Some(8));
        // That goes on as long as it fails, and some time longer.
        failures.refill(at(9_000));
        assert_eq!(limit(&failures, &held), Some(100));
        failures.refill(at(11_200));
        assert_eq!(limit(&failures, &held), None);
    }

    #[test]
    fn callbacks_of_a_tenant_count_as_failed_until_one_has_succeeded() {
        let now = Instant::now();
        let (mut failures, mut held) = (Failures::default(), Held::default());
        failures.began("a", now);
        let limit = |failures: &Failures, held: &Held| failures.tenants(held).next().map(|(_, limit)| limit);
        (0..60).for_each(|_| held.enter("a"));
        assert_eq!(limit(&failures, &held), Some(40));
        (0..40).for_each(|_| held.enter("a"));
        assert!(failures.is_closed("a", None, &held));
        failures.ended("a", "good", false, now);
        assert!(limit(&failures, &held).is_none() && !failures.is_closed("a", None, &held));
    }
}
