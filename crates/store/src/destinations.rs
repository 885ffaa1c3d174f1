//! Pauses of destinations over all shards, pages of destinations, which are the sums over the lanes of each origin, and
//! the destinations that fail, as all processes report them.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::try_join_all;
use ringback_core::breaker::Stage;
use ringback_core::destination::{DestinationPause, Origin};
use ringback_core::flow::Limits;
use ringback_core::job::TenantScope;
use ringback_core::store_types::{
    DestinationCounts, DestinationPage, DestinationPlace, DestinationQuery, DestinationReport, FailingChange,
    FailingDestination, Failures, LaneSpan, LimitTarget, MAX_DESTINATION_PAGE, PauseLimit, ReportedBreakers,
    Shard, SharedFailing, StoreError,
};

use crate::backend::backend;
use crate::store::Store;

/// How often a call begins again because another process has changed the same destination meanwhile.
const TRIES: usize = 8;

impl Store {
    /// Pauses a destination: no job of the pause's scope is delivered there any more. Deliveries that are under way go
    /// on and are settled. If a shard has too many pauses, ends the pause in all shards and returns the limit. Works
    /// shard by shard: if it fails, the destination may be paused in some of them.
    pub async fn pause_destination(
        &self,
        pause: &DestinationPause,
    ) -> Result<Result<(), PauseLimit>, StoreError> {
        for shard in self.shards() {
            if let Some(limit) = backend!(self.pause_destination(shard, pause).await)? {
                self.resume_destination(pause).await?;
                return Ok(Err(limit));
            }
        }
        Ok(Ok(()))
    }

    /// Ends a pause of a destination. Returns whether it was paused. Works shard by shard like
    /// [`Store::pause_destination`]: the destination counts as paused until the last shard has resumed.
    pub async fn resume_destination(&self, pause: &DestinationPause) -> Result<bool, StoreError> {
        let mut was_paused = false;
        for shard in self.shards() {
            was_paused |= backend!(self.resume_destination(shard, pause).await)?;
        }
        Ok(was_paused)
    }

    /// All pauses of destinations, of all scopes.
    pub async fn paused_destinations(&self) -> Result<BTreeSet<DestinationPause>, StoreError> {
        let of_shards = self.shards().map(async |shard| backend!(self.paused_destinations(shard).await));
        Ok(try_join_all(of_shards).await?.into_iter().flatten().collect())
    }

    /// A page of the origins of these lanes and of the scope's paused and limited destinations without jobs,
    /// [`MAX_DESTINATION_PAGE`] at most. Reads the counts of all these lanes, a part at a time, so the sums can be
    /// slightly off.
    pub async fn destinations(
        &self,
        spans: &[LaneSpan],
        scope: &TenantScope,
        query: &DestinationQuery,
    ) -> Result<DestinationPage, StoreError> {
        let limit = query.limit.clamp(1, MAX_DESTINATION_PAGE);
        let shared = backend!(self.failing().await)?;
        let mut failing = failing_places(&shared.destinations(scope));
        if query.failing && failing.is_empty() {
            return Ok(DestinationPage::default());
        }
        let only = query.failing.then_some(&failing);
        let pauses = self.paused_destinations().await?.into_iter();
        let pauses: Vec<_> = pauses.filter(|pause| pause.is_of_all() || pause.is_of(scope)).collect();
        // A list of some topics shows nothing else.
        let is_of_topics = spans.iter().any(|span| matches!(span, LaneSpan::Topic(_)));
        let shows_pauses = !is_of_topics && !query.failing;
        let limits = if shows_pauses { backend!(self.limit_names().await)? } else { Vec::new() };
        let limits = limits.iter().filter_map(LimitTarget::destination);
        let forced_closed = shared.forced_closed(scope);
        let own = pauses.iter().chain(limits).chain(&forced_closed);
        let own = own.filter(|of| shows_pauses && of.is_of(scope));
        let without_jobs = own.cloned().collect();
        let empty = Sums { after: query.after.as_ref(), limit, only, without_jobs, found: BTreeMap::new() };
        let of_shards = self.shards().map(async |shard| {
            let mut sums = empty.clone();
            for span in spans {
                self.add_lanes(shard, span, &mut sums).await?;
            }
            Ok::<_, StoreError>(sums)
        });
        let mut all = empty.clone();
        for sums in try_join_all(of_shards).await? {
            // Each shard has returned `limit` places and one more, or all of them, so the first `limit` sums are
            // complete.
            sums.found.into_iter().for_each(|(place, counts)| all.add(place, counts));
            all.without_jobs.retain(|pause| sums.without_jobs.contains(pause));
        }
        for pause in std::mem::take(&mut all.without_jobs) {
            all.add(DestinationPlace::from(&pause), DestinationCounts::default());
        }
        let (is_more, mut items) = (all.found.len() > limit, all.found);
        if is_more {
            items.pop_last();
        }
        let next = items.last_key_value().filter(|_| is_more).map(|(place, _)| place.clone());
        failing.retain(|place, _| items.contains_key(place));
        Ok(DestinationPage { items, next, pauses, forced_closed, failing })
    }

    /// Merges reports into the stored list of failing destinations, and limits callbacks as their breakers say, which it
    /// returns. Returns `None` if other processes changed the same destinations in each of several tries, so that nothing
    /// was stored. Reporting the same again can count its failures twice.
    pub async fn report_destinations(
        &self,
        reports: &[DestinationReport],
        has_breakers: bool,
    ) -> Result<Option<ReportedBreakers>, StoreError> {
        let change = |shared: &mut SharedFailing| {
            let changes = shared.report(reports, has_breakers);
            let breakers = shared.breakers(reports, &changes);
            Ok((changes, breakers))
        };
        Ok(self.change_failing(change).await?.and_then(Result::ok))
    }

    /// Forces the breakers of a destination closed until they are reset. If it would be one too many, changes nothing and
    /// returns which bound that is. Tries again while other processes change the same destinations.
    pub async fn force_breakers_closed(
        &self,
        of: &DestinationPause,
    ) -> Result<Result<(), PauseLimit>, StoreError> {
        loop {
            let force = |shared: &mut SharedFailing| Ok((shared.force_closed(of)?, ()));
            if let Some(result) = self.change_failing(force).await? {
                return Ok(result);
            }
        }
    }

    /// Closes the breakers of a destination, and lets them open again as they do. Tries again while other processes change
    /// the same destinations.
    pub async fn reset_breakers(&self, of: &DestinationPause) -> Result<(), StoreError> {
        let reset = |shared: &mut SharedFailing| Ok((shared.reset_breakers(of), ()));
        while self.change_failing(reset).await?.is_none() {}
        Ok(())
    }

    /// The destinations whose breakers are forced closed, for jobs of this scope.
    pub async fn forced_closed(&self, scope: &TenantScope) -> Result<Vec<DestinationPause>, StoreError> {
        Ok(backend!(self.failing().await)?.forced_closed(scope))
    }

    /// Changes the stored list as `change` says, with the limits of its breakers. Returns `None` if other processes
    /// changed it in each of several tries.
    async fn change_failing<T>(
        &self,
        change: impl Fn(&mut SharedFailing) -> Result<(Vec<FailingChange>, T), PauseLimit>,
    ) -> Result<Option<Result<T, PauseLimit>>, StoreError> {
        for _ in 0..TRIES {
            let mut shared = backend!(self.failing().await)?;
            let (changes, answer) = match change(&mut shared) {
                Ok(changes) => changes,
                Err(limit) => return Ok(Some(Err(limit))),
            };
            if changes.is_empty() || backend!(self.change_failing(&changes).await)? {
                self.limit_by_breakers(&changes, shared).await?;
                return Ok(Some(Ok(answer)));
            }
        }
        Ok(None)
    }

    /// Makes the limits of changed breakers those that the list says, until it has not changed meanwhile.
    async fn limit_by_breakers(
        &self,
        changes: &[FailingChange],
        mut shared: SharedFailing,
    ) -> Result<(), StoreError> {
        let mut breakers: Vec<_> = changes.iter().filter_map(ChangedBreaker::of).collect();
        let targets: Vec<_> = breakers.iter().map(|breaker| breaker.target.clone()).collect();
        for _ in 0..TRIES {
            let states = self.limits(&targets).await?;
            let mut is_done = true;
            for breaker in &mut breakers {
                let now = states.iter().find(|state| state.of == breaker.target);
                let now = now.map(|state| state.limits).unwrap_or_default();
                let wanted = shared.breaker_limits(breaker.name);
                if now != wanted || breaker.is_stale(&wanted) {
                    is_done = false;
                    self.limit_by_breaker(breaker, &now, wanted).await?;
                }
            }
            if is_done {
                break;
            }
            shared = backend!(self.failing().await)?;
        }
        Ok(())
    }

    /// Puts the limit of a breaker. Shards that have its mark, because the breaker was not closed before, are not marked again.
    async fn limit_by_breaker(
        &self,
        breaker: &mut ChangedBreaker<'_>,
        now: &Limits,
        wanted: Limits,
    ) -> Result<(), StoreError> {
        let is_marked = breaker.put.map_or(breaker.was_limited, |put| !put.is_empty());
        let is_exceeded = if is_marked && !now.is_empty() && !wanted.is_empty() {
            backend!(self.put_limit(&breaker.target, &wanted).await)?.is_some()
        } else {
            self.limit(&breaker.target, &wanted).await?.is_err()
        };
        if is_exceeded {
            let destination = breaker.name;
            tracing::warn!(destination, "no breaker: there are as many limits as there may be");
        }
        breaker.put = Some(wanted);
        Ok(())
    }

    /// The destinations that fail for the jobs of a scope.
    pub async fn failing_destinations(
        &self,
        scope: &TenantScope,
    ) -> Result<Vec<FailingDestination>, StoreError> {
        Ok(backend!(self.failing().await)?.destinations(scope))
    }

    /// Adds the counts of a shard's lanes to `sums`, a part at a time. Pauses and limits with a lane are no longer
    /// `without_jobs`.
    async fn add_lanes(&self, shard: Shard, span: &LaneSpan, sums: &mut Sums<'_>) -> Result<(), StoreError> {
        let mut from: Option<Box<[u8]>> = None;
        loop {
            let (part, next) = backend!(self.destinations(shard, span, from.as_deref()).await)?;
            for (origin, counts) in part {
                if let Some(origin) = Origin::parse(&origin) {
                    sums.without_jobs.retain(|pause| !pause.destination.has(&origin));
                    sums.add(DestinationPlace::from(&origin), counts);
                }
            }
            if next.is_none() {
                return Ok(());
            }
            from = next;
        }
    }
}

/// A breaker that a change is about, and its limit.
struct ChangedBreaker<'c> {
    /// The name of its destination in the list.
    name: &'c str,
    target: LimitTarget,
    /// Whether it had a limit before the change.
    was_limited: bool,
    /// Whether the limit is to be put even if there is the same, because its time begins anew.
    begins_anew: bool,
    /// What this process has put; `None` if nothing.
    put: Option<Limits>,
}

impl<'c> ChangedBreaker<'c> {
    fn of(change: &'c FailingChange) -> Option<Self> {
        let (target, before, after) = change.breaker()?;
        let was_limited = before != Stage::Closed;
        let begins_anew = before != after && matches!(after, Stage::Slowed { .. } | Stage::Open { .. });
        Some(Self { name: &change.name, target, was_limited, begins_anew, put: None })
    }

    /// Whether the limit has to be put although there is the wanted one: not for the same time, or another process has put
    /// it while this one ended it, so that shards may not know of it.
    fn is_stale(&self, wanted: &Limits) -> bool {
        self.put.map_or(self.begins_anew, |put| put != *wanted)
    }
}

/// The failures of each origin, of all its tenants together.
fn failing_places(failing: &[FailingDestination]) -> BTreeMap<DestinationPlace, Failures> {
    let mut places = BTreeMap::<_, Failures>::new();
    for FailingDestination { origin, failures, .. } in failing {
        let Some(origin) = Origin::parse(origin) else { continue };
        match places.entry(DestinationPlace::from(&origin)) {
            Entry::Vacant(place) => drop(place.insert(failures.clone())),
            Entry::Occupied(mut place) => place.get_mut().add(failures),
        }
    }
    places
}

/// The first places after one, with their counts: one more than the page has.
#[derive(Clone)]
struct Sums<'a> {
    after: Option<&'a DestinationPlace>,
    limit: usize,
    /// The places that are wanted; `None` for all.
    only: Option<&'a BTreeMap<DestinationPlace, Failures>>,
    found: BTreeMap<DestinationPlace, DestinationCounts>,
    /// The pauses and limits of the scope for which no lane was found.
    without_jobs: BTreeSet<DestinationPause>,
}

impl Sums<'_> {
    fn add(&mut self, place: DestinationPlace, counts: DestinationCounts) {
        if self.only.is_some_and(|only| !only.contains_key(&place)) {
            return;
        }
        let is_before = self.after.is_some_and(|after| place <= *after);
        let is_full = self.found.len() > self.limit;
        if is_before || is_full && self.found.last_key_value().is_some_and(|(last, _)| place > *last) {
            return;
        }
        self.found.entry(place).or_default().add(counts);
        if self.found.len() > self.limit + 1 {
            self.found.pop_last();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_places_are_kept_with_all_of_their_counts() {
        let place = |host: &str| DestinationPlace::from(&Origin::parse(&format!("http://{host}")).unwrap());
        let after = place("b");
        let mut sums = Sums {
            after: Some(&after),
            limit: 2,
            only: None,
            found: BTreeMap::new(),
            without_jobs: BTreeSet::new(),
        };
        for host in ["f", "e", "a", "d", "b", "c", "e", "d", "f", "c"] {
            sums.add(place(host), DestinationCounts { ready: 1, ..DestinationCounts::default() });
        }
        let found: Vec<_> = sums.found.iter().map(|(place, counts)| (&*place.host, counts.ready)).collect();
        // There is one more than the limit; its count may be too low.
        assert_eq!(found[..2], [("c", 2), ("d", 2)]);
        assert_eq!(found.len(), 3);
    }
}
