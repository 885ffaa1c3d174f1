//! `Reports`: collects how late attempts were, and how those of each destination have ended, by tenant, and reports it to
//! the store every five seconds; what fails every second, or at once if a breaker may have to open. `failing` collects the failures for the log.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ringback_core::breaker::Counts;
use ringback_core::clock::Timestamp;
use ringback_core::job::{Tenant, TenantScope, Topic};
use ringback_core::store_types::{DestinationReport, FAILING_QUIET, Failures, Lateness};
use ringback_service::shutdown::Shutdown;
use ringback_store::Store;
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tracing::debug;

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
    /// Notified when a breaker may have to open.
    outage: Notify,
}

/// By origin; each of a tenant, or of those without one.
#[derive(Default)]
struct Destinations {
    by_origin: HashMap<Box<str>, Vec<Known>>,
    count: usize,
    /// How many destinations have a report.
    reported: usize,
    /// Whether a destination that fails has a report.
    is_failing: bool,
}

/// A destination of a tenant.
struct Known {
    scope: TenantScope,
    /// What has happened since the last report; `None` if nothing has.
    report: Option<DestinationReport>,
    successes: Successes,
    /// When it failed last; `None` if it does not fail.
    failed: Option<Timestamp>,
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

    /// Records a failed attempt, and how it counts in the breaker.
    pub(crate) fn failed(&self, topic: &Topic, origin: &str, counts: Counts, failures: Failures) {
        let at = failures.last_at();
        self.destinations().change(topic, origin, |known, report| {
            if known.failed.is_none() {
                report.rate = report.rate.or(Some(known.successes.per_second(at)));
            }
            known.failed = known.failed.max(Some(at));
            report.counts.add(counts);
            match &mut report.failures {
                Some(known) => known.add(&failures),
                none => *none = Some(failures),
            }
            if report.counts.is_outage() {
                self.outage.notify_one();
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
    /// Without breakers those of the destinations that are reported are closed.
    pub(crate) async fn run(
        self: Arc<Self>,
        store: Store,
        has_breakers: bool,
        call_timeout: Duration,
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
                () = self.outage.notified() => false,
                () = shutdown.stopping() => true,
            };
            if is_round {
                self.report_lateness(&store, call_timeout).await;
            }
            let reports = self.destinations().take(is_round);
            if reports.is_empty() {
                continue;
            }
            match timeout(call_timeout, store.report_destinations(&reports, has_breakers)).await {
                Ok(Ok(true)) => {}
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
        let mut report = known.report.take().unwrap_or_else(|| DestinationReport {
            tenant: topic.tenant(),
            origin: origin.into(),
            failures: None,
            success: None,
            counts: Counts::default(),
            rate: None,
        });
        change(known, &mut report);
        known.report = Some(report);
        let is_failing = known.failed.is_some();
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
                self.retain(|known| known.report.is_some());
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
            };
            self.by_origin.entry(origin.into()).or_default().push(known);
        }
        let all = self.by_origin.get_mut(origin)?;
        match found {
            Some(place) => all.get_mut(place),
            None => all.last_mut(),
        }
    }

    /// Takes the reports; unless `all`, only if one is of a destination that fails.
    fn take(&mut self, all: bool) -> Vec<DestinationReport> {
        if !all && !self.is_failing {
            return Vec::new();
        }
        (self.reported, self.is_failing) = (0, false);
        let known = self.by_origin.values_mut().flatten();
        let reports = known.filter_map(|known| known.report.take()).collect();
        // The others have nothing that a later report needs.
        self.retain(|known| known.successes.now + known.successes.before > 0);
        reports
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn failures(ms: u64) -> Failures {
        Failures::new(at(ms), Some(500), None)
    }

    fn topic(text: &str) -> Topic {
        Topic::from_stored(text).expect("a topic")
    }

    fn sorted(reports: &Reports) -> Vec<DestinationReport> {
        let mut all = reports.destinations().take(true);
        all.sort_by(|one, other| (&one.origin, &one.tenant).cmp(&(&other.origin, &other.tenant)));
        all
    }

    const OUTAGE: Counts = Counts { attempts: 1, outages: 1, answers: 0 };
    const ANSWER: Counts = Counts { attempts: 1, outages: 0, answers: 1 };

    #[test]
    fn what_attempts_say_is_kept_by_destination_and_tenant_until_it_is_taken() {
        let reports = Reports::default();
        reports.failed(&topic("a"), "http://a", OUTAGE, failures(1));
        reports.failed(&topic("b"), "http://a", OUTAGE, failures(3));
        reports.succeeded(&topic("~t/a"), "http://a", ANSWER, at(5));
        reports.succeeded(&topic("~t/b"), "http://a", ANSWER, at(4));
        reports.succeeded(&topic("a"), "http://a", ANSWER, at(2));
        reports.succeeded(&topic("a"), "http://b", ANSWER, at(6));
        let mut both = failures(1);
        both.add(&failures(3));
        let report = |tenant: Option<&str>, origin: &str, failures, success, counts| DestinationReport {
            tenant: tenant.map(|tenant| tenant.parse().expect("a tenant")),
            origin: origin.into(),
            failures,
            success: Some(at(success)),
            counts,
            rate: None,
        };
        let expected = [
            DestinationReport {
                rate: Some(0),
                ..report(None, "http://a", Some(both), 2, Counts { attempts: 3, outages: 2, answers: 1 })
            },
            report(Some("t"), "http://a", None, 5, Counts { attempts: 2, outages: 0, answers: 2 }),
            report(None, "http://b", None, 6, ANSWER),
        ];
        assert_eq!(sorted(&reports), expected);
        assert_eq!(sorted(&reports), []);
    }

    #[test]
    fn only_what_fails_is_reported_at_once_and_with_the_successes_of_before() {
        let reports = Reports::default();
        for n in 0..600 {
            reports.succeeded(&topic("a"), "http://a", ANSWER, at(1_000_000 + n * 100));
        }
        assert_eq!(reports.destinations().take(false), []);
        reports.failed(&topic("a"), "http://a", OUTAGE, failures(1_060_000));
        let taken = reports.destinations().take(false);
        assert_eq!(taken.iter().map(|report| report.rate).collect::<Vec<_>>(), [Some(10)]);
        reports.failed(&topic("a"), "http://a", OUTAGE, failures(1_060_001));
        let taken = reports.destinations().take(false);
        assert_eq!(taken.iter().map(|report| report.rate).collect::<Vec<_>>(), [None]);
    }

    #[test]
    fn what_the_store_did_not_take_is_in_the_next_report_with_what_came_since() {
        let reports = Reports::default();
        reports.failed(&topic("a"), "http://a", OUTAGE, failures(1));
        reports.failed(&topic("a"), "http://b", OUTAGE, failures(2));
        let taken = reports.destinations().take(true);
        reports.failed(&topic("a"), "http://a", OUTAGE, failures(3));
        reports.destinations().put_back(taken);
        let all = sorted(&reports);
        assert_eq!(all.len(), 2);
        let first = all[0].failures.as_ref().expect("it fails");
        assert_eq!((first.since(), first.last_at(), first.attempts()), (at(1), at(3), 2));
    }

    #[test]
    fn a_report_has_room_for_so_many_destinations() {
        let reports = Reports::default();
        for n in 0..=MAX {
            reports.failed(&topic("a"), &format!("http://{n}"), OUTAGE, failures(1));
        }
        assert_eq!(reports.destinations().take(true).len(), MAX);
        reports.failed(&topic("a"), "http://a", OUTAGE, failures(1));
        assert_eq!(reports.destinations().take(true).len(), 1, "there is room again");
    }
}
