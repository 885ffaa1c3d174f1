//! A histogram of durations, and its quantiles in milliseconds.

use std::time::Duration;

use hdrhistogram::Histogram;

/// Longer durations count as this one.
const MAX: Duration = Duration::from_secs(3600);
/// The significant digits that are kept.
const DIGITS: u8 = 3;

/// Durations to a microsecond or a thousandth of themselves, whichever is more.
#[derive(Clone, Debug)]
pub(crate) struct Latencies(Histogram<u64>);

impl Latencies {
    pub(crate) fn new() -> Self {
        let max = u64::try_from(MAX.as_micros()).unwrap_or(u64::MAX);
        Self(Histogram::new_with_bounds(1, max, DIGITS).expect("the bounds are in order"))
    }

    pub(crate) fn record(&mut self, duration: Duration) {
        self.0.saturating_record(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX));
    }

    /// Adds all durations of another histogram.
    pub(crate) fn add(&mut self, other: &Self) {
        self.0.add(&other.0).expect("both have the same bounds");
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.len()
    }

    /// The quantile `q` in milliseconds: 0.5 is the median, 1 the longest. `NaN` for an empty histogram.
    pub(crate) fn millis(&self, q: f64) -> f64 {
        if self.0.is_empty() {
            return f64::NAN;
        }
        self.0.value_at_quantile(q) as f64 / 1000.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_all_that_was_added() {
        let mut low = Latencies::new();
        let mut high = Latencies::new();
        (1..=50).for_each(|ms| low.record(Duration::from_millis(ms)));
        (51..=100).for_each(|ms| high.record(Duration::from_millis(ms)));
        low.add(&high);
        assert_eq!(low.count(), 100);
        for (q, wanted) in [(0.5, 50.0), (0.99, 99.0), (1.0, 100.0)] {
            let millis = low.millis(q);
            assert!((millis - wanted).abs() <= wanted / 1000.0, "{millis} for {q}");
        }
    }

    #[test]
    fn of_nothing_there_is_no_quantile() {
        assert!(Latencies::new().millis(0.5).is_nan());
    }

    #[test]
    fn a_duration_that_is_too_long_counts_as_the_longest() {
        let mut latencies = Latencies::new();
        latencies.record(Duration::from_secs(86_400));
        assert!(latencies.millis(1.0) >= MAX.as_secs_f64() * 1000.0);
    }
}
