//! Gauges that are read when `/metrics` is asked for, because their values are not known in this process:
//! a role adds a source, and each scrape asks all sources. A gauge that a source leaves out is absent.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use prometheus::proto::MetricFamily;
use prometheus::{GaugeVec, Opts, Registry};
use tokio::time::timeout;

use crate::telemetry::Metric;

/// How long a scrape waits for the sources. If one takes longer, the gauges of all are absent.
const WAIT: Duration = Duration::from_secs(2);

type Source = Arc<dyn Fn() -> BoxFuture<'static, Vec<GaugeValues>> + Send + Sync>;

/// The sources of gauges. Clones share them.
#[derive(Clone, Default)]
pub struct Scrapes(Arc<Mutex<Vec<Source>>>);

#[derive(Clone, Debug, PartialEq)]
pub struct GaugeValues {
    pub metric: Metric,
    /// A value for each set of labels. Without any, the gauge is absent.
    pub values: Vec<(Vec<String>, f64)>,
}

impl Scrapes {
    /// Adds a source, which every scrape asks. It should answer within a second.
    pub fn add<F>(&self, source: impl Fn() -> F + Send + Sync + 'static)
    where
        F: Future<Output = Vec<GaugeValues>> + Send + 'static,
    {
        self.lock().push(Arc::new(move || Box::pin(source())));
    }

    /// Asks all sources at the same time, and returns their gauges; none if a source does not answer within [`WAIT`].
    pub(crate) async fn read(&self) -> Vec<MetricFamily> {
        let sources: Vec<Source> = self.lock().clone();
        let read = timeout(WAIT, join_all(sources.iter().map(|source| source()))).await;
        read.unwrap_or_default().into_iter().flatten().flat_map(|gauge| gauge.families()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Source>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Scrapes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scrapes({})", self.lock().len())
    }
}

impl GaugeValues {
    /// The metric in the format of the registry, with its values in order.
    fn families(self) -> Vec<MetricFamily> {
        let Self { metric, values } = self;
        let options = Opts::new(metric.name, metric.about);
        let gauge = GaugeVec::new(options, metric.labels).expect("names of metrics and labels are valid");
        for (labels, value) in &values {
            gauge.with_label_values(labels).set(*value);
        }
        let registry = Registry::new();
        registry.register(Box::new(gauge)).expect("it is the only metric");
        registry.gather()
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use prometheus::TextEncoder;

    use super::*;
    use crate::telemetry::MetricKind;

    fn gauge(name: &'static str, about: &'static str, labels: &'static [&'static str]) -> Metric {
        Metric { name, kind: MetricKind::Gauge, labels, buckets: &[], about }
    }

    fn jobs(values: &[(&str, f64)]) -> GaugeValues {
        let values = values.iter().map(|(state, value)| (vec![(*state).to_owned()], *value)).collect();
        GaugeValues { metric: gauge("ringback_test_jobs", "Jobs", &["state"]), values }
    }

    async fn text(scrapes: &Scrapes) -> String {
        TextEncoder::new().encode_to_string(&scrapes.read().await).expect("text")
    }

    #[tokio::test]
    async fn every_source_is_asked_at_each_scrape() {
        let scrapes = Scrapes::default();
        scrapes.add(|| ready(vec![jobs(&[("dead", 0.0), ("ready", 2.0)])]));
        scrapes.clone().add(|| {
            let metric = gauge("ringback_test_seconds", "Age", &[]);
            ready(vec![GaugeValues { metric, values: vec![(Vec::new(), 1.5)] }])
        });
        let expected = "\
# HELP ringback_test_jobs Jobs
# TYPE ringback_test_jobs gauge
ringback_test_jobs{state=\"dead\"} 0
ringback_test_jobs{state=\"ready\"} 2
# HELP ringback_test_seconds Age
# TYPE ringback_test_seconds gauge
ringback_test_seconds 1.5
";
        assert_eq!(text(&scrapes).await, expected);
        assert_eq!(text(&scrapes).await, expected);
    }

    #[tokio::test]
    async fn a_gauge_without_values_is_absent() {
        let scrapes = Scrapes::default();
        scrapes.add(|| ready(vec![jobs(&[])]));
        assert_eq!(text(&scrapes).await, "");
    }

    #[tokio::test(start_paused = true)]
    async fn a_source_that_does_not_answer_holds_up_no_scrape_for_long() {
        let scrapes = Scrapes::default();
        scrapes.add(pending);
        let start = tokio::time::Instant::now();
        assert_eq!(text(&scrapes).await, "");
        assert_eq!(start.elapsed(), WAIT);
    }
}
