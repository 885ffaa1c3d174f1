//! A histogram of lateness: how long after their due time jobs were sent. Notifiers report it to the store.
//!
//! Buckets grow by an eighth from 1 ms to about two days, so a percentile is at most 12.5 % too high.
//! Bucket 0 is everything under 1 ms.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

const GROWTH: f64 = 1.125;
const BUCKETS: u16 = 160;

/// A histogram of lateness.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lateness {
    counts: BTreeMap<u16, u64>,
    max_us: u64,
}

impl Lateness {
    /// Counts a delivery that was sent `late` after its due time.
    pub fn record(&mut self, late: Duration) {
        *self.counts.entry(bucket(late)).or_default() += 1;
        self.max_us = self.max_us.max(u64::try_from(late.as_micros()).unwrap_or(u64::MAX));
    }

    /// Adds another histogram.
    pub fn merge(&mut self, other: &Self) {
        for (bucket, n) in &other.counts {
            *self.counts.entry(*bucket).or_default() += n;
        }
        self.max_us = self.max_us.max(other.max_us);
    }

    /// The number of deliveries.
    pub fn count(&self) -> u64 {
        self.counts.values().sum()
    }

    /// The buckets and how many deliveries each has.
    pub fn counts(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        self.counts.iter().map(|(bucket, n)| (*bucket, *n))
    }

    /// The highest lateness, in µs.
    pub fn max_us(&self) -> u64 {
        self.max_us
    }

    /// The highest lateness, in ms; `None` without deliveries.
    pub fn max_ms(&self) -> Option<f64> {
        (self.count() > 0).then_some(self.max_us as f64 / 1000.0)
    }

    /// The lateness in ms that a share `q` (0 to 1) of the deliveries does not exceed; `None` without deliveries.
    pub fn quantile_ms(&self, q: f64) -> Option<f64> {
        let rank = (self.count() as f64 * q).ceil().max(1.0);
        let mut seen = 0.0;
        for (bucket, n) in &self.counts {
            seen += *n as f64;
            if seen >= rank {
                return Some(upper_ms(*bucket).min(self.max_us as f64 / 1000.0));
            }
        }
        None
    }

    /// Encodes the histogram as `bucket:count` words and `max:microseconds`; empty without deliveries.
    pub fn encode(&self) -> String {
        let mut text = String::new();
        for (bucket, n) in &self.counts {
            let _ = write!(text, "{bucket}:{n} ");
        }
        if !text.is_empty() {
            let _ = write!(text, "max:{}", self.max_us);
        }
        text
    }

    /// Adds `n` to the bucket `name`, or takes `n` as a maximum in microseconds if that is `max`. Ignores other names.
    pub fn add_field(&mut self, name: &str, n: u64) {
        if name == "max" {
            self.max_us = self.max_us.max(n);
        } else if let Ok(bucket) = name.parse() {
            *self.counts.entry(bucket).or_default() += n;
        }
    }
}

fn bucket(late: Duration) -> u16 {
    let ms = late.as_secs_f64() * 1000.0;
    if ms < 1.0 {
        return 0;
    }
    let steps = (ms.ln() / GROWTH.ln()).floor();
    // Bounded before the cast.
    1 + steps.clamp(0.0, f64::from(BUCKETS)) as u16
}

/// The end of a bucket in ms, rounded up to a whole microsecond.
fn upper_ms(bucket: u16) -> f64 {
    (GROWTH.powi(i32::from(bucket)) * 1000.0).ceil() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn percentiles_are_never_too_low_and_at_most_an_eighth_too_high() {
        let mut h = Lateness::default();
        (1..=1000).for_each(|n| h.record(ms(n)));
        for (q, exact) in [(0.5, 500.0), (0.99, 990.0), (1.0, 1000.0)] {
            let got = h.quantile_ms(q).unwrap();
            assert!((exact..=exact * GROWTH).contains(&got), "{q}: {got}");
        }
        assert_eq!(h.max_ms(), Some(1000.0));
        assert_eq!(Lateness::default().quantile_ms(0.5), None);
    }

    #[test]
    fn figures_have_at_most_three_decimals() {
        let mut h = Lateness::default();
        (0..60).for_each(|n| h.record(Duration::from_nanos(1_234_567) * 2_u32.pow(n % 25)));
        let figures = [h.quantile_ms(0.1), h.quantile_ms(0.5), h.quantile_ms(0.99), h.max_ms()];
        for text in figures.map(|figure| figure.unwrap().to_string()) {
            let decimals = text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
            assert!(decimals <= 3, "{text}");
        }
    }

    #[test]
    fn an_encoded_histogram_is_read_as_it_was() {
        let mut h = Lateness::default();
        [0, 3, 3, 70_000].into_iter().for_each(|n| h.record(ms(n)));
        let mut back = Lateness::default();
        for word in h.encode().split(' ') {
            let (name, n) = word.split_once(':').unwrap();
            back.add_field(name, n.parse().unwrap());
        }
        assert_eq!(back, h);
    }
}
