//! `Reports`: collects how late attempts were, and the failures and the last success of each destination, by tenant, and
//! reports them to the store every five seconds. `failing` collects the failures for the log.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ringback_core::clock::Timestamp;
use ringback_core::job::{TenantScope, Topic};
use ringback_core::store_types::{DestinationReport, Failures, Lateness};
use ringback_service::shutdown::Shutdown;
use ringback_store::Store;
use tokio::time::{sleep, timeout};
use tracing::debug;

/// How often reports are made, while there are attempts.
const EVERY: Duration = Duration::from_secs(5);
/// How many destinations are in one report. Further ones are in a later one, if they are attempted again.
const MAX: usize = 10_000;

/// What has happened since the last report.
#[derive(Default)]
pub(crate) struct Reports {
    destinations: Mutex<Destinations>,
    lateness: Mutex<Lateness>,
}

/// By origin; each of a tenant, or of those without one.
#[derive(Default)]
struct Destinations {
    by_origin: HashMap<Box<str>, Vec<(TenantScope, DestinationReport)>>,
    count: usize,
}

impl Reports {
    /// Records that an attempt was sent `late` after its due time.
    pub(crate) fn sent(&self, late: Duration) {
        self.lateness().record(late);
    }

    /// Records a failed attempt.
    pub(crate) fn failed(&self, topic: &Topic, origin: &str, failures: Failures) {
        self.destinations().change(topic, origin, |report| match &mut report.failures {
            Some(known) => known.add(&failures),
            none => *none = Some(failures),
        });
    }

    /// Records a success.
    pub(crate) fn succeeded(&self, topic: &Topic, origin: &str, at: Timestamp) {
        self.destinations().change(topic, origin, |report| report.success = report.success.max(Some(at)));
    }

    /// Makes the reports until the shutdown, and a last one then. What the store does not accept is in the next report.
    pub(crate) async fn run(self: Arc<Self>, store: Store, call_timeout: Duration, shutdown: Shutdown) {
        while !shutdown.is_stopping() {
            tokio::select! {
                () = sleep(EVERY) => {}
                () = shutdown.stopping() => {}
            }
            self.report_lateness(&store, call_timeout).await;
            let reports = self.destinations().take();
            if reports.is_empty() {
                continue;
            }
            match timeout(call_timeout, store.report_destinations(&reports)).await {
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
    fn change(&mut self, topic: &Topic, origin: &str, change: impl FnOnce(&mut DestinationReport)) {
        let known = self.by_origin.get_mut(origin);
        let known = known.and_then(|reports| reports.iter_mut().find(|(scope, _)| scope.has(topic)));
        if let Some((_, report)) = known {
            return change(report);
        }
        let mut report = DestinationReport {
            tenant: topic.tenant(),
            origin: origin.into(),
            failures: None,
            success: None,
        };
        change(&mut report);
        self.add(report);
    }

    /// Adds the report of a destination that has none; drops it if there are [`MAX`].
    fn add(&mut self, report: DestinationReport) {
        if self.count < MAX {
            self.count += 1;
            let scope = TenantScope::One(report.tenant.clone());
            self.by_origin.entry(report.origin.clone()).or_default().push((scope, report));
        }
    }

    fn take(&mut self) -> Vec<DestinationReport> {
        self.count = 0;
        std::mem::take(&mut self.by_origin).into_values().flatten().map(|(_, report)| report).collect()
    }

    /// Puts back reports that the store did not accept, and merges them with those made since.
    fn put_back(&mut self, reports: Vec<DestinationReport>) {
        for mut report in reports {
            let known = self.by_origin.get_mut(&report.origin);
            let known = known.and_then(|all| all.iter_mut().find(|(_, later)| later.tenant == report.tenant));
            match known {
                Some((_, later)) => {
                    report.add(later.clone());
                    *later = report;
                }
                None => self.add(report),
            }
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
        let mut all = reports.destinations().take();
        all.sort_by(|one, other| (&one.origin, &one.tenant).cmp(&(&other.origin, &other.tenant)));
        all
    }

    #[test]
    fn what_attempts_say_is_kept_by_destination_and_tenant_until_it_is_taken() {
        let reports = Reports::default();
        reports.failed(&topic("a"), "http://a", failures(1));
        reports.failed(&topic("b"), "http://a", failures(3));
        reports.succeeded(&topic("~t/a"), "http://a", at(5));
        reports.succeeded(&topic("~t/b"), "http://a", at(4));
        reports.succeeded(&topic("a"), "http://a", at(2));
        reports.succeeded(&topic("a"), "http://b", at(6));
        let mut both = failures(1);
        both.add(&failures(3));
        let report = |tenant: Option<&str>, origin: &str, failures, success| DestinationReport {
            tenant: tenant.map(|tenant| tenant.parse().expect("a tenant")),
            origin: origin.into(),
            failures,
            success: Some(at(success)),
        };
        let expected = [
            report(None, "http://a", Some(both), 2),
            report(Some("t"), "http://a", None, 5),
            report(None, "http://b", None, 6),
        ];
        assert_eq!(sorted(&reports), expected);
        assert_eq!(sorted(&reports), []);
    }

    #[test]
    fn what_the_store_did_not_take_is_in_the_next_report_with_what_came_since() {
        let reports = Reports::default();
        reports.failed(&topic("a"), "http://a", failures(1));
        reports.failed(&topic("a"), "http://b", failures(2));
        let taken = reports.destinations().take();
        reports.failed(&topic("a"), "http://a", failures(3));
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
            reports.failed(&topic("a"), &format!("http://{n}"), failures(1));
        }
        assert_eq!(reports.destinations().take().len(), MAX);
        reports.failed(&topic("a"), "http://a", failures(1));
        assert_eq!(reports.destinations().take().len(), 1, "there is room again");
    }
}
