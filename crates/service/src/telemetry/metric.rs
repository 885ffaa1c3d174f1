//! How a metric is declared: name, kind, labels, buckets and description, once. [`metrics!`](crate::metrics) makes the
//! instruments of a role and the list `METRICS` for the reference page from it.

use opentelemetry::metrics::{Counter, Gauge, Histogram, Meter, UpDownCounter};

/// A metric as it appears on `/metrics`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metric {
    /// The name, with its unit at the end.
    pub name: &'static str,
    pub kind: MetricKind,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// The upper bounds of the buckets of a histogram.
    pub buckets: &'static [f64],
    /// The description, without a full stop.
    pub about: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum MetricKind {
    /// It only grows while a process runs.
    Counter,
    /// A value of now.
    Gauge,
    /// Counts of values by bucket.
    Histogram,
}

/// Declares the metrics of a role. Each field of the struct is an instrument that the role records with. The constants
/// below `read` are read when `/metrics` is asked for. `METRICS` lists all of them.
#[macro_export]
macro_rules! metrics {
    (@buckets) => { &[] };
    (@buckets $buckets:expr) => { $buckets };
    (
        $(
            $(#[$doc:meta])*
            struct $Instruments:ident {
                $(
                    $field:ident: $Type:ty = $name:literal, $about:literal
                        $(, by $($label:literal)+)? $(, buckets $buckets:expr)?;
                )*
            }
        )?
        $(read {
            $(
                $read:ident: $kind:ident = $read_name:literal, $read_about:literal
                    $(, by $($read_label:literal)+)?;
            )*
        })?
    ) => {
        $(
            $(#[$doc])*
            #[derive(Clone)]
            pub(crate) struct $Instruments {
                $(pub(crate) $field: $Type,)*
            }

            impl $Instruments {
                pub(crate) fn create(meter: &::opentelemetry::metrics::Meter) -> Self {
                    let mut declared = METRICS.iter();
                    Self {
                        $($field: $crate::telemetry::Instrument::create(
                            meter,
                            declared.next().expect("they are in the order of the fields"),
                        ),)*
                    }
                }
            }
        )?

        $($(
            pub(crate) const $read: $crate::telemetry::Metric = $crate::telemetry::Metric {
                name: $read_name,
                kind: $crate::telemetry::MetricKind::$kind,
                labels: &[$($($read_label),+)?],
                buckets: &[],
                about: $read_about,
            };
        )*)?

        /// The metrics of this crate, in the order of the reference page.
        pub const METRICS: &[$crate::telemetry::Metric] = &[
            $($(
                $crate::telemetry::Metric {
                    name: $name,
                    kind: <$Type as $crate::telemetry::Instrument>::KIND,
                    labels: &[$($($label),+)?],
                    buckets: $crate::metrics!(@buckets $($buckets)?),
                    about: $about,
                },
            )*)?
            $($($read,)*)?
        ];
    };
}

/// An instrument with which a role records the values of a metric.
pub trait Instrument: Sized {
    const KIND: MetricKind;

    fn create(meter: &Meter, metric: &Metric) -> Self;
}

/// Without labels it is on `/metrics` from the start: the increase of a counter that appears with its first event has no
/// beginning, so no alarm would see that event.
impl Instrument for Counter<u64> {
    const KIND: MetricKind = MetricKind::Counter;

    fn create(meter: &Meter, metric: &Metric) -> Self {
        let counter = meter.u64_counter(metric.name).with_description(metric.about).build();
        if metric.labels.is_empty() {
            counter.add(0, &[]);
        }
        counter
    }
}

impl Instrument for UpDownCounter<i64> {
    const KIND: MetricKind = MetricKind::Gauge;

    fn create(meter: &Meter, metric: &Metric) -> Self {
        meter.i64_up_down_counter(metric.name).with_description(metric.about).build()
    }
}

impl Instrument for Gauge<u64> {
    const KIND: MetricKind = MetricKind::Gauge;

    fn create(meter: &Meter, metric: &Metric) -> Self {
        meter.u64_gauge(metric.name).with_description(metric.about).build()
    }
}

impl Instrument for Gauge<f64> {
    const KIND: MetricKind = MetricKind::Gauge;

    fn create(meter: &Meter, metric: &Metric) -> Self {
        meter.f64_gauge(metric.name).with_description(metric.about).build()
    }
}

impl Instrument for Histogram<u64> {
    const KIND: MetricKind = MetricKind::Histogram;

    fn create(meter: &Meter, metric: &Metric) -> Self {
        let histogram = meter.u64_histogram(metric.name).with_description(metric.about);
        histogram.with_boundaries(metric.buckets.to_vec()).build()
    }
}

impl Instrument for Histogram<f64> {
    const KIND: MetricKind = MetricKind::Histogram;

    fn create(meter: &Meter, metric: &Metric) -> Self {
        let histogram = meter.f64_histogram(metric.name).with_description(metric.about);
        histogram.with_boundaries(metric.buckets.to_vec()).build()
    }
}
