//! Logs, traces and metrics of one process.
//!
//! Logs go to stderr, as text or as JSON lines, through a queue that never blocks. Traces are exported over
//! OTLP (protobuf over HTTP) if an OTLP endpoint is set: spans and events of Ringback's crates at level `info`
//! and above, regardless of the log filter. Prometheus reads the metrics from the admin port.
//!
//! A metric has exactly the name of its instrument. No suffix is added for the unit or the kind, so
//! the name contains both (`ringback_callback_duration_seconds`, `ringback_submitted_total`). There is
//! neither `target_info` nor an `otel_scope_` label. Histograms set their own boundaries
//! (`with_boundaries`).

mod callsite_limits;
mod export;
mod limited;
mod log_format;
mod log_queue;
mod metric;
mod panics;
mod variables;

use std::error::Error;
use std::io::{self, IsTerminal as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Meter, MeterProvider as _};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use prometheus::Registry;
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

use self::limited::Limited;
pub use self::log_format::LogFormat;
pub(crate) use self::log_queue::LogQueue;
pub use self::metric::{Instrument, Metric, MetricKind};
pub(crate) use self::variables::{exports_traces, not_honoured};

/// The target of the lines of the audit log. None of them is suppressed, however many there are.
pub const AUDIT_LOG: &str = "ringback_api::audit_log";

crate::metrics! {
    read {
        DROPPED_LINES: Counter = "ringback_log_lines_dropped_total",
            "Log lines that stderr did not take in time, or at all";
        CLOCK_AHEAD: Gauge = "ringback_store_clock_ahead_seconds",
            "How far the time of the store is ahead of the clock of this machine";
    }
}

/// How long the last spans may take to be exported when the process ends.
const FLUSH: Duration = Duration::from_secs(3);

static EXPORTING: AtomicBool = AtomicBool::new(false);

/// Returns true if traces are exported. If not, callers skip the cost of their spans.
#[must_use]
pub fn tracing_active() -> bool {
    EXPORTING.load(Ordering::Relaxed)
}

/// An error as a log field, which shows its causes too.
pub fn with_causes<E: Error + 'static>(error: &E) -> &(dyn Error + 'static) {
    error
}

/// The options of [`Telemetry::start`].
pub(crate) struct Options {
    pub(crate) service: &'static str,
    pub(crate) version: &'static str,
    pub(crate) filter: Targets,
    pub(crate) format: LogFormat,
    /// True if the environment names an OTLP endpoint. The exporter reads the endpoint itself.
    pub(crate) export_traces: bool,
}

/// The telemetry of a running process. [`Telemetry::stop`] flushes it.
pub(crate) struct Telemetry {
    service: &'static str,
    registry: Registry,
    metrics: SdkMeterProvider,
    traces: Option<SdkTracerProvider>,
}

impl Telemetry {
    /// Sets up logs, traces and metrics for the process. Must run inside its runtime. Log lines go to `queue`.
    pub(crate) fn start(options: &Options, queue: &LogQueue) -> anyhow::Result<Self> {
        let (registry, metrics) = metrics()?;
        let traces = options.export_traces.then(|| export::provider(resource(options))).transpose()?;
        log(options, queue, traces.as_ref())?;
        count_dropped(&metrics.meter(options.service), queue.clone());
        opentelemetry::global::set_text_map_propagator(TraceContextPropagator::new());
        EXPORTING.store(traces.is_some(), Ordering::Relaxed);
        Ok(Self { service: options.service, registry, metrics, traces })
    }

    pub(crate) fn meter(&self) -> Meter {
        self.metrics.meter(self.service)
    }

    pub(crate) fn registry(&self) -> Registry {
        self.registry.clone()
    }

    /// Ends the export of traces: exports the remaining spans, for at most [`FLUSH`], and warns if that fails.
    pub(crate) async fn stop(self) {
        EXPORTING.store(false, Ordering::Relaxed);
        let Some(traces) = self.traces else { return };
        // It blocks its thread until the collector answers.
        let flush = tokio::task::spawn_blocking(move || traces.shutdown());
        if !matches!(tokio::time::timeout(FLUSH, flush).await, Ok(Ok(Ok(())))) {
            tracing::warn!("cannot export the last traces");
        }
    }
}

/// Creates the registry that `/metrics` reads and the provider whose instruments fill it.
pub(crate) fn metrics() -> anyhow::Result<(Registry, SdkMeterProvider)> {
    let registry = Registry::new();
    let exporter = opentelemetry_prometheus::exporter()
        .with_registry(registry.clone())
        .without_units()
        .without_counter_suffixes()
        .without_target_info()
        .scope_info_enabled(false)
        .build()
        .context("cannot set up metrics")?;
    Ok((registry, SdkMeterProvider::builder().with_reader(exporter).build()))
}

/// The resource of traces. A service name of `OTEL_SERVICE_NAME` or `OTEL_RESOURCE_ATTRIBUTES` takes precedence; the
/// version is always ours.
fn resource(options: &Options) -> Resource {
    let detected = Resource::builder().with_attribute(KeyValue::new("service.version", options.version));
    let named = Resource::builder()
        .build()
        .get(&"service.name".into())
        .is_some_and(|name| !name.as_str().starts_with("unknown_service"));
    if named { detected.build() } else { detected.with_service_name(options.service).build() }
}

fn log(options: &Options, queue: &LogQueue, traces: Option<&SdkTracerProvider>) -> anyhow::Result<()> {
    let filter = options.filter.clone();
    let registry = tracing_subscriber::registry();
    let set = match traces {
        None => registry.with(filter).with(lines(options.format, queue)).try_init(),
        Some(provider) => {
            let spans = tracing_opentelemetry::layer()
                .with_tracer(provider.tracer(options.service))
                .with_location(false)
                .with_threads(false)
                .with_tracked_inactivity(false)
                // Spans of the HTTP client would create new spans with every export.
                .with_filter(Targets::new().with_target("ringback", LevelFilter::INFO));
            registry.with(spans).with(lines(options.format, queue).with_filter(filter)).try_init()
        }
    };
    set.context("cannot set up logging")?;
    panics::log(queue.clone());
    Ok(())
}

fn lines<S: Subscriber + for<'a> LookupSpan<'a>>(
    format: LogFormat,
    queue: &LogQueue,
) -> Box<dyn Layer<S> + Send + Sync> {
    let lines = tracing_subscriber::fmt::layer().with_writer(queue.clone());
    let queue = queue.clone();
    match format {
        LogFormat::Text => {
            let lines = lines.with_ansi(io::stderr().is_terminal());
            lines.map_event_format(|format| Limited { format, queue }).boxed()
        }
        LogFormat::Json => {
            let lines = lines.json().flatten_event(true).with_span_list(false);
            lines.map_event_format(|format| Limited { format, queue }).boxed()
        }
    }
}

/// Exports the number of dropped log lines, which is 0 at the start.
fn count_dropped(meter: &Meter, queue: LogQueue) {
    meter
        .u64_observable_counter(DROPPED_LINES.name)
        .with_description(DROPPED_LINES.about)
        .with_callback(move |counter| counter.observe(queue.dropped(), &[]))
        .build();
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::panic;

    use prometheus::TextEncoder;
    use tracing::subscriber::with_default;

    use super::*;

    /// Long enough for a thread to write some lines.
    const SOON: Duration = Duration::from_secs(20);

    /// What is logged meanwhile, up to the end of the process.
    fn logged(format: LogFormat, work: impl FnOnce(&LogQueue)) -> String {
        let (mut reader, out) = io::pipe().unwrap();
        let queue = LogQueue::start(format, out).unwrap();
        with_default(tracing_subscriber::registry().with(lines(format, &queue)), || work(&queue));
        queue.end(SOON);
        let mut text = vec![0; 64 * 1024];
        let length = reader.read(&mut text).unwrap();
        String::from_utf8(text[..length].to_vec()).unwrap()
    }

    #[test]
    fn at_most_ten_lines_of_a_kind_are_logged_and_the_rest_is_counted() {
        let text = logged(LogFormat::Text, |_| {
            for n in 0..57 {
                tracing::warn!(n, "it failed");
                tracing::debug!(n, "attempt");
            }
            tracing::info!("another kind");
        });
        let count = |part: &str| text.lines().filter(|line| line.contains(part)).count();
        assert_eq!(
            (count(": it failed n="), count(": attempt n="), count(": another kind")),
            (10, 57, 1),
            "{text}"
        );
        let report = " WARN ringback_service::telemetry::tests: similar lines were suppressed like=\"it failed\" lines=47 since=";
        assert_eq!((count(report), text.lines().count()), (1, 10 + 57 + 1 + 1), "{text}");
    }

    #[test]
    fn reports_of_suppressed_lines_are_json_too() {
        let text = logged(LogFormat::Json, |_| (0..12).for_each(|n| tracing::info!(n, "it {}", "began")));
        let lines: Vec<serde_json::Value> = text.lines().map(|line| line.parse().unwrap()).collect();
        let report = &lines[10];
        assert_eq!(
            (lines.len(), &report["level"], &report["lines"]),
            (11, &"INFO".into(), &2.into()),
            "{text}"
        );
        assert_eq!((&report["like"], &report["target"]), (&"it began".into(), &lines[0]["target"]), "{text}");
    }

    fn log_panic(queue: &LogQueue) {
        let before = panic::take_hook();
        panics::log(queue.clone());
        panic::catch_unwind(|| panic!("out of {}", "luck")).unwrap_err();
        panic::set_hook(before);
    }

    #[test]
    fn a_panic_is_a_line_of_the_log() {
        for format in [LogFormat::Text, LogFormat::Json] {
            let text = logged(format, log_panic);
            // A backtrace may follow.
            let line = text.lines().next().unwrap();
            for part in ["a thread panicked", "out of luck", "telemetry.rs:"] {
                assert!(line.contains(part), "no {part} in {line}");
            }
        }
    }

    #[test]
    fn a_panic_ends_its_thread_although_nobody_reads_the_log() {
        let (_reader, out) = io::pipe().unwrap();
        let queue = LogQueue::start(LogFormat::Text, out).unwrap();
        with_default(tracing_subscriber::registry().with(lines(LogFormat::Text, &queue)), || {
            // Fills the pipe.
            (0..2_000)
                .for_each(|n| tracing::debug!(n, "a line of some length, so that the pipe is full soon"));
            log_panic(&queue);
        });
    }

    #[test]
    fn metrics_come_out_under_the_names_of_their_instruments() {
        let (registry, provider) = metrics().unwrap();
        let meter = provider.meter("ringback-test");
        let topic = [KeyValue::new("topic", "pay")];
        meter
            .u64_counter("ringback_submitted_total")
            .with_description("Jobs accepted")
            .build()
            .add(2, &topic);
        meter.u64_gauge("ringback_buffer_bytes").with_unit("By").build().record(9, &[]);
        let lateness = meter
            .f64_histogram("ringback_lateness_seconds")
            .with_unit("s")
            .with_boundaries(vec![0.01, 0.1])
            .build();
        lateness.record(0.05, &[]);

        let text = TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        let expected = "\
# TYPE ringback_buffer_bytes gauge
ringback_buffer_bytes 9
# TYPE ringback_lateness_seconds histogram
ringback_lateness_seconds_bucket{le=\"0.01\"} 0
ringback_lateness_seconds_bucket{le=\"0.1\"} 1
ringback_lateness_seconds_bucket{le=\"+Inf\"} 1
ringback_lateness_seconds_sum 0.05
ringback_lateness_seconds_count 1
# HELP ringback_submitted_total Jobs accepted
# TYPE ringback_submitted_total counter
ringback_submitted_total{topic=\"pay\"} 2
";
        assert_eq!(text, expected);
    }
}
