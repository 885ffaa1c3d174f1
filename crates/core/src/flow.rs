//! Limits of flow: how many callbacks may begin in a time, and how many may be in flight, over all notifiers together.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The highest rate, in callbacks a second.
const MAX_PER_SECOND: u64 = 1_000_000;
/// The most callbacks of a burst, and the most in flight, that a limit may allow.
pub const MAX_FLOW: u32 = 1_000_000;

/// A rate: `count` callbacks per `unit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    count: u32,
    unit: Unit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Second,
    Minute,
    Hour,
    Day,
}

impl Unit {
    const ALL: [Self; 4] = [Self::Second, Self::Minute, Self::Hour, Self::Day];

    const fn letter(self) -> &'static str {
        match self {
            Self::Second => "s",
            Self::Minute => "m",
            Self::Hour => "h",
            Self::Day => "d",
        }
    }

    const fn seconds(self) -> u64 {
        match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 3600,
            Self::Day => 24 * 3600,
        }
    }
}

impl Rate {
    /// The form of a rate, for error messages.
    pub const ALLOWED: &'static str =
        "a whole number from 1 on, and a unit: 10/s, 6/m, 100/h or 1000/d; at most 1000000/s";

    /// The rate with this count and the unit of these seconds, as [`Rate::parts`] returns them; `None` for another unit.
    pub fn from_parts(count: u32, seconds: u64) -> Option<Self> {
        let unit = Unit::ALL.into_iter().find(|unit| unit.seconds() == seconds)?;
        (count > 0).then_some(Self { count, unit })
    }

    /// The count, and the length of the unit in seconds.
    pub const fn parts(self) -> (u32, u64) {
        (self.count, self.unit.seconds())
    }

    /// The time from one callback to the next, in µs, when they go as fast as is allowed. It is longer by a fortieth than
    /// the rate says, so that a callback that leaves a little late, and the next one in time, keep to the rate.
    pub fn interval_us(self) -> f64 {
        let (count, seconds) = self.parts();
        seconds as f64 * 1_025_000.0 / f64::from(count)
    }
}

impl FromStr for Rate {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let (count, letter) = text.split_once('/').ok_or(Self::ALLOWED)?;
        let unit = Unit::ALL.into_iter().find(|unit| unit.letter() == letter).ok_or(Self::ALLOWED)?;
        let is_number = count.bytes().all(|byte| byte.is_ascii_digit());
        let count: u32 = count.parse().ok().filter(|_| is_number).ok_or(Self::ALLOWED)?;
        if count == 0 || u64::from(count) > MAX_PER_SECOND * unit.seconds() {
            return Err(Self::ALLOWED);
        }
        Ok(Self { count, unit })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.count, self.unit.letter())
    }
}

/// What limits callbacks. `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// In any time t at most rate × t + burst callbacks begin.
    pub rate: Option<Rate>,
    /// How many may begin at once after a pause; 1 if it is not set. Without a rate it has no effect.
    pub burst: Option<u32>,
    /// How many may be in flight.
    pub in_flight: Option<u32>,
}

impl Limits {
    /// Whether nothing is limited.
    pub const fn is_empty(&self) -> bool {
        self.rate.is_none() && self.in_flight.is_none()
    }

    /// How many callbacks may begin at once.
    pub fn burst(&self) -> u32 {
        self.burst.unwrap_or(1)
    }
}

/// When the next callbacks may begin under a rate: a token bucket, as the time at which it would be full again (the
/// generic cell rate algorithm of ITU-T I.371). In µs of one clock.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bucket {
    full_at: f64,
}

impl Bucket {
    /// The bucket that is full at this time.
    pub const fn full_at(full_at: f64) -> Self {
        Self { full_at }
    }

    /// When a callback may begin that would begin at `at` without the limit.
    pub fn earliest(self, limits: &Limits, at: f64) -> f64 {
        let Some(rate) = limits.rate else { return at };
        at.max(self.full_at - f64::from(limits.burst() - 1) * rate.interval_us())
    }

    /// Takes the token of a callback that begins at `at`, which must not be before [`Bucket::earliest`].
    pub fn take(&mut self, limits: &Limits, at: f64) {
        if let Some(rate) = limits.rate {
            self.full_at = self.full_at.max(at) + rate.interval_us();
        }
    }

    /// Puts the last `n` tokens back, which were not used.
    pub fn put_back(&mut self, limits: &Limits, n: u32) {
        if let Some(rate) = limits.rate {
            self.full_at -= f64::from(n) * rate.interval_us();
        }
    }

    /// Goes on under other limits: what was taken under the old ones delays the next callback by one interval at most.
    pub fn change(&mut self, limits: &Limits, now: f64) {
        if let Some(rate) = limits.rate {
            self.full_at = self.full_at.min(now + rate.interval_us());
        }
    }
}

/// How much later than its admission a callback begins at the earliest if it needs a token: until then its job is reserved,
/// so that it begins in time.
pub const LEAD: Duration = Duration::from_millis(20);
/// How long a notifier may be given places ahead: the begin of a callback is at most this much later than its admission.
pub const MAX_AHEAD: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_written_as_they_are_read() {
        for text in ["1/s", "1000000/s", "6/m", "100/h", "86400/d"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
            let (count, seconds) = text.parse::<Rate>().unwrap().parts();
            assert_eq!(Rate::from_parts(count, seconds).unwrap().to_string(), text);
        }
        for text in [
            "",
            "1",
            "/s",
            "0/s",
            "1.5/s",
            "-1/s",
            "+1/s",
            "1/S",
            "1/sec",
            "1 /s",
            "1000001/s",
            "4294967296/d",
        ] {
            assert_eq!(text.parse::<Rate>(), Err(Rate::ALLOWED), "{text}");
        }
    }

    #[test]
    fn in_any_time_no_more_begin_than_the_rate_and_a_burst() {
        for (rate, burst) in [("10/s", 1), ("100/s", 20), ("6/m", 3)] {
            let limits = Limits { rate: Some(rate.parse().unwrap()), burst: Some(burst), in_flight: None };
            let (count, seconds) = limits.rate.unwrap().parts();
            let (mut bucket, mut began, mut at) = (Bucket::default(), Vec::new(), 1e15);
            for n in 0..400 {
                // Sometimes nothing waits for a while.
                at = bucket.earliest(&limits, if n % 97 == 0 { at + 3e6 } else { at });
                bucket.take(&limits, at);
                began.push(at);
            }
            for (i, first) in began.iter().enumerate() {
                for (j, last) in began.iter().enumerate().skip(i) {
                    let allowed =
                        f64::from(count) * (last - first) / (seconds as f64 * 1e6) + f64::from(burst);
                    assert!(
                        (j - i + 1) as f64 <= allowed + 1e-6,
                        "{rate}: {} in {}",
                        j - i + 1,
                        last - first
                    );
                }
            }
        }
    }

    #[test]
    fn a_bucket_is_emptied_as_fast_as_the_rate_allows_but_a_fortieth() {
        let limits = Limits { rate: Some("100/s".parse().unwrap()), ..Limits::default() };
        let (mut bucket, mut at) = (Bucket::default(), 1e15);
        for _ in 0..1000 {
            at = bucket.earliest(&limits, at);
            bucket.take(&limits, at);
        }
        assert!((at - 1e15 - 999.0 * 10_250.0).abs() < 1.0, "{}", at - 1e15);
    }

    #[test]
    fn a_token_that_is_put_back_is_there_again_and_another_rate_holds_at_once() {
        let limits = Limits { rate: Some("6/m".parse().unwrap()), ..Limits::default() };
        let mut bucket = Bucket::default();
        bucket.take(&limits, 1e15);
        bucket.put_back(&limits, 1);
        assert_eq!(bucket.earliest(&limits, 1e15), 1e15);
        bucket.take(&limits, 1e15);
        assert_eq!(bucket.earliest(&limits, 1e15), 1e15 + 10_250_000.0);
        let faster = Limits { rate: Some("10/s".parse().unwrap()), ..limits };
        bucket.change(&faster, 1e15);
        assert_eq!(bucket.earliest(&faster, 1e15), 1e15 + 102_500.0);
    }
}
