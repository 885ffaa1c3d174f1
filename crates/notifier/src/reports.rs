//! `Reports`: collects how late attempts were, and how those of each destination have ended, by tenant, and reports it to
//! the store every five seconds; what fails, or has a breaker that is not closed, every second, or at once if callbacks
//! may have to stop. `failing` collects the failures for the log.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ringback_core::breaker::{Counts, Stage};
use ringback_core::clock::{Clock, Timestamp};
use ringback_core::job::{Tenant, TenantScope, Topic};
use ringback_core::store_types::{
    DestinationReport, FAILING_QUIET, FailingDestination, Failures, Lateness, ReportedBreakers,
};
use ringback_service::shutdown::Shutdown;
use ringback_store::Store;
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tracing::{debug, warn};

use crate::metrics::Metrics;

/// How often what fails is reported, so that breakers act soon.
const TICK: Duration = Duration::from_secs(1);
/// After how many of these the rest is reported, while there are attempts.
const EVERY: u32 = 5;
/// How many destinations are in one report. Further ones are in a later one, if they are attempted again.
const MAX: usize = 10_000;

/// What has happened since the last report.
#[derive(Default)]
pub(crate) struct Reports {
    destinations: Mutex<Destinations>,
    lateness: Mutex<Lateness>,
    /// Notified when callbacks may have to stop.
    urgent: Notify,
}

/// By origin; each of a tenant, or of those without one.
#[derive(Default)]
struct Destinations {
    by_origin: HashMap<Box<str>, Vec<Known>>,
    count: usize,
    /// How many destinations have a report.
    reported: usize,
    /// Whether a destination that fails, or has a breaker that is not closed, has a report.
    is_failing: bool,
    /// How many had a breaker that was not closed, at their last report.
    held: usize,
}

/// A destination of a tenant.
struct Known {
    scope: TenantScope,
    /// What has happened since the last report; `None` if nothing has.
    report: Option<DestinationReport>,
    successes: Successes,
    /// When it failed last; `None` if it does not fail.
    failed: Option<Timestamp>,
    /// What its breaker did at its last report.
    breaker: Stage,
}

/// How many attempts succeeded in this minute and in the one before.
#[derive(Default)]
struct Successes {
    /// When this minute began.
    from: Timestamp,
    now: u32,
    before: u32,
}

impl Successes {
    const MINUTE: Duration = Duration::from_secs(60);

    fn add(&mut self, at: Timestamp) {
        self.pass(at);
        self.now = self.now.saturating_add(1);
    }

    /// How many a second there were in the last minute or two.
    fn per_second(&mut self, at: Timestamp) -> u32 {
        self.pass(at);
        let minutes = if self.before == 0 { Duration::ZERO } else { Self::MINUTE };
        let seconds = (minutes + at.since(self.from)).as_secs().max(1);
        let rate = u64::from(self.now.saturating_add(self.before)).div_ceil(seconds);
        u32::try_from(rate).unwrap_or(u32::MAX)
    }

    fn pass(&mut self, at: Timestamp) {
        if at.since(self.from) >= 2 * Self::MINUTE {
            *self = Self { from: at, now: 0, before: 0 };
        } else if at.since(self.from) >= Self::MINUTE {
            *self = Self { from: self.from.plus(Self::MINUTE), now: 0, before: self.now };
        }
    }
}

impl Reports {
    /// Records that an attempt was sent `late` after its due time.
    pub(crate) fn sent(&self, late: Duration) {
        self.lateness().record(late);
    }

    /// Records a failed attempt, how it counts in the breaker, and until when the receiver wants no callbacks.
    pub(crate) fn failed(
        &self,
        topic: &Topic,
        origin: &str,
        counts: Counts,
        failures: Failures,
        slow_until: Option<Timestamp>,
    ) {
        let at = failures.last_at();
        self.destinations().change(topic, origin, |known, report| {
            if known.failed.is_none() {
                report.rate = report.rate.or(Some(known.successes.per_second(at)));
            }
            known.failed = known.failed.max(Some(at));
            report.counts.add(counts);
            let is_first_to_slow = slow_until.is_some() && report.slow_until.is_none();
            report.slow_until = report.slow_until.max(slow_until);
            match &mut report.failures {
                Some(known) => known.add(&failures),
                none => *none = Some(failures),
            }
            if known.breaker == Stage::Closed && (is_first_to_slow || report.counts.is_outage()) {
                self.urgent.notify_one();
            }
        });
    }

    /// Records a success, and how it counts in the breaker.
    pub(crate) fn succeeded(&self, topic: &Topic, origin: &str, counts: Counts, at: Timestamp) {
        self.destinations().change(topic, origin, |known, report| {
            known.successes.add(at);
            known.failed = known.failed.filter(|failed| at.since(*failed) < FAILING_QUIET);
            report.counts.add(counts);
            report.success = report.success.max(Some(at));
        });
    }

    /// Records an answer that is neither a success nor a failure of the destination.
    pub(crate) fn answered(&self, topic: &Topic, origin: &str, counts: Counts) {
        self.destinations().change(topic, origin, |_, report| report.counts.add(counts));
    }

    /// Makes the reports until the shutdown, and a last one then. What the store does not accept is in the next report.
    /// Without breakers those of the destinations that are reported are closed. `clock` is that of the store.
    pub(crate) async fn run(
        self: Arc<Self>,
        store: Store,
        has_breakers: bool,
        call_timeout: Duration,
        clock: Arc<dyn Clock>,
        metrics: Metrics,
        shutdown: Shutdown,
    ) {
        let mut rounds = interval(TICK * EVERY);
        let mut ticks = interval(TICK);
        for timer in [&mut rounds, &mut ticks] {
            timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        }
        while !shutdown.is_stopping() {
            let is_round = tokio::select! {
                _ = rounds.tick() => true,
                _ = ticks.tick() => false,
                () = self.urgent.notified() => false,
                () = shutdown.stopping() => true,
            };
            if is_round {
                self.report_lateness(&store, call_timeout).await;
            }
            let reports = self.destinations().take(is_round, clock.now());
            if reports.is_empty() {
                continue;
            }
            match timeout(call_timeout, store.report_destinations(&reports, has_breakers)).await {
                Ok(Ok(Some(ReportedBreakers { stages, opened }))) => {
                    self.destinations().learn(&reports, stages);
                    metrics.breaker_openings.add(opened.len() as u64, &[]);
                    opened.iter().for_each(log_opened);
                }
                result => {
                    debug!(
                        ?result,
                        destinations = reports.len(),
                        "the store did not take a report of destinations"
                    );
                    self.destinations().put_back(reports);
                }
            }
        }
    }

    /// Reports to one shard, because statistics are sums over all.
    async fn report_lateness(&self, store: &Store, call_timeout: Duration) {
        let (lateness, shard) = (std::mem::take(&mut *self.lateness()), store.shards().next());
        let Some(shard) = shard.filter(|_| lateness.count() > 0) else { return };
        let result = timeout(call_timeout, store.add_lateness(shard, &lateness)).await;
        if !matches!(result, Ok(Ok(()))) {
            debug!(?result, deliveries = lateness.count(), "the store did not take a report of lateness");
            self.lateness().merge(&lateness);
        }
    }

    fn destinations(&self) -> MutexGuard<'_, Destinations> {
        self.destinations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lateness(&self) -> MutexGuard<'_, Lateness> {
        self.lateness.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Destinations {
    fn change(
        &mut self,
        topic: &Topic,
        origin: &str,
        change: impl FnOnce(&mut Known, &mut DestinationReport),
    ) {
        let of = |scope: &TenantScope| scope.has(topic);
        let Some(known) = self.known(origin, of, || topic.tenant()) else { return };
        let was_reported = known.report.is_some();
        let mut report = known.report.take().unwrap_or_else(|| empty(topic.tenant(), origin));
        change(known, &mut report);
        known.report = Some(report);
        let is_failing = known.failed.is_some() || known.breaker != Stage::Closed;
        self.is_failing |= is_failing;
        self.reported += usize::from(!was_reported);
    }

    /// Finds a destination, or adds it; `None` if there are [`MAX`] with a report.
    fn known(
        &mut self,
        origin: &str,
        is_it: impl Fn(&TenantScope) -> bool,
        tenant: impl FnOnce() -> Option<Tenant>,
    ) -> Option<&mut Known> {
        let place = |all: &Vec<Known>| all.iter().position(|known| is_it(&known.scope));
        let found = self.by_origin.get(origin).and_then(place);
        if found.is_none() {
            if self.count >= MAX && self.reported < self.count {
                self.retain(|known| known.report.is_some() || known.breaker != Stage::Closed);
            }
            if self.count >= MAX {
                return None;
            }
            self.count += 1;
            let known = Known {
                scope: TenantScope::One(tenant()),
                report: None,
                successes: Successes::default(),
                failed: None,
                breaker: Stage::Closed,
            };
            self.by_origin.entry(origin.into()).or_default().push(known);
        }
        let all = self.by_origin.get_mut(origin)?;
        match found {
            Some(place) => all.get_mut(place),
            None => all.last_mut(),
        }
    }

    /// Takes the reports; unless `all`, only if one is of a destination that fails. Adds one for each receiver whose time
    /// without callbacks is over, so that its breaker closes.
    fn take(&mut self, all: bool, now: Timestamp) -> Vec<DestinationReport> {
        if self.held > 0 {
            self.report_ended(now);
        }
        if !all && !self.is_failing {
            return Vec::new();
        }
        (self.reported, self.is_failing) = (0, false);
        let known = self.by_origin.values_mut().flatten();
        let reports = known.filter_map(|known| known.report.take()).collect();
        // The others have nothing that a later report needs.
        self.retain(|known| {
            known.successes.now + known.successes.before > 0 || known.breaker != Stage::Closed
        });
        reports
    }

    fn report_ended(&mut self, now: Timestamp) {
        for (origin, all) in &mut self.by_origin {
            for known in all {
                if matches!(known.breaker, Stage::Slowed { until, .. } if now >= until) {
                    let TenantScope::One(tenant) = &known.scope else { continue };
                    self.is_failing = true;
                    if known.report.is_none() {
                        known.report = Some(empty(tenant.clone(), origin));
                        self.reported += 1;
                    }
                }
            }
        }
    }

    /// Records what the breakers of reported destinations do.
    fn learn(&mut self, reports: &[DestinationReport], stages: Vec<Stage>) {
        for (report, stage) in reports.iter().zip(stages) {
            let of = |scope: &TenantScope| scope.has_tenant(report.tenant.as_ref());
            let all = self.by_origin.get(&report.origin);
            let is_known = all.is_some_and(|all| all.iter().any(|known| of(&known.scope)));
            if (is_known || stage != Stage::Closed)
                && let Some(known) = self.known(&report.origin, of, || report.tenant.clone())
            {
                known.breaker = stage;
            }
        }
        let known = self.by_origin.values().flatten();
        self.held = known.filter(|known| known.breaker != Stage::Closed).count();
    }

    fn retain(&mut self, is_kept: impl Fn(&Known) -> bool) {
        self.by_origin.retain(|_, all| {
            all.retain(&is_kept);
            !all.is_empty()
        });
        self.count = self.by_origin.values().map(Vec::len).sum();
    }

    /// Puts back reports that the store did not accept, and merges them with those made since.
    fn put_back(&mut self, reports: Vec<DestinationReport>) {
        for mut report in reports {
            let of = |scope: &TenantScope| scope.has_tenant(report.tenant.as_ref());
            let Some(known) = self.known(&report.origin, of, || report.tenant.clone()) else { continue };
            let later = known.report.take();
            let is_more = later.is_none();
            if let Some(later) = later {
                report.add(later);
            }
            let is_failing = report.failures.is_some();
            known.report = Some(report);
            self.reported += usize::from(is_more);
            self.is_failing |= is_failing;
        }
    }
}

/// A report of nothing.
fn empty(tenant: Option<Tenant>, origin: &str) -> DestinationReport {
    DestinationReport {
        tenant,
        origin: origin.into(),
        failures: None,
        success: None,
        counts: Counts::default(),
        rate: None,
        slow_until: None,
    }
}

fn log_opened(FailingDestination { tenant, origin, failures }: &FailingDestination) {
    let (tenant, status, error) =
        (tenant.as_ref().map(Tenant::as_str), failures.last_status(), failures.last_error());
    warn!(
        destination = &**origin,
        tenant, status, error, "a breaker opens: nobody answers there, and callbacks wait but for probes"
    );
}

#[cfg(test)]
mod tests;
