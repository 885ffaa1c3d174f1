//! Circuit breakers: when callbacks to an origin stop because nothing there answers, how often one callback probes it,
//! how fast the others come back, and how long they wait if the receiver asks for it. Pure. Processes share the state of
//! each breaker in the list of failing destinations, and it is enforced by limits (`flow`).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::flow::{Limits, Rate};

/// A breaker opens after so many attempts in [`WINDOW`] at least.
pub const LEAST_ATTEMPTS: u32 = 20;
/// The time over which attempts are counted. Older ones are forgotten half a window at a time.
pub const WINDOW: Duration = Duration::from_secs(30);
/// How long callbacks go at the rate of before the breaker opened, until it is closed.
pub const WATCH: Duration = Duration::from_secs(60);
/// The longest that callbacks wait because a receiver asks for it, by 429 or by 503 with `Retry-After`.
pub const LONGEST_SLOWED: Duration = Duration::from_secs(60);
/// The seconds to the next probe after each failed one. Up to a fifth less, so that the probes of breakers that opened
/// together do not stay together.
const PAUSES: [u64; 7] = [1, 2, 4, 8, 15, 30, 60];
/// The rate, in callbacks a second, up to which an origin comes back of which no success is known.
const UNKNOWN_RATE: u32 = 1024;

/// How attempts at an origin ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// All of them.
    pub attempts: u32,
    /// Those without a complete answer, and those that were answered with 502, 503 or 504.
    pub outages: u32,
    /// Those with any other complete answer but 429, whether it accepts the job or not.
    pub answers: u32,
}

impl Counts {
    pub const fn add(&mut self, other: Self) {
        self.attempts = self.attempts.saturating_add(other.attempts);
        self.outages = self.outages.saturating_add(other.outages);
        self.answers = self.answers.saturating_add(other.answers);
    }

    /// Whether nobody there answers.
    pub const fn is_outage(self) -> bool {
        self.attempts >= LEAST_ATTEMPTS && self.outages >= self.attempts.div_ceil(2) && self.answers == 0
    }
}

/// The breaker of the callbacks of one tenant to one origin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breaker {
    /// The counts of this half of a window and of the one before, and the number of this half.
    half: u64,
    counts: [Counts; 2],
    /// Successes a second in the minute before the failures began, over all processes.
    rate: u32,
    stage: Stage,
}

/// What a breaker does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Callbacks go as ever.
    #[default]
    Closed,
    /// The receiver has asked for fewer callbacks: none begins for a time.
    Slowed {
        /// When it asked last.
        at: Timestamp,
        /// Until when none begins.
        until: Timestamp,
    },
    /// One callback at a time probes the origin.
    Open {
        /// When it opened.
        since: Timestamp,
        /// How many probes in a row have failed, at most as many as there are pauses.
        failed: u8,
        /// When it opened, or the last probe failed.
        at: Timestamp,
        /// When the next probe may begin.
        next: Timestamp,
    },
    /// The origin has answered: callbacks come back, twice as many each second.
    Returning {
        /// When it opened.
        since: Timestamp,
        /// How many may begin a second, and since when.
        rate: u32,
        at: Timestamp,
    },
}

impl Breaker {
    pub const fn stage(&self) -> Stage {
        self.stage
    }

    /// Whether nobody there has answered, or not for long.
    pub const fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Open { .. } | Stage::Returning { .. })
    }

    /// What limits the callbacks to the origin. A limit of a breaker allows the first one an interval after it was put.
    pub fn limits(&self) -> Limits {
        match self.stage {
            Stage::Closed => Limits::default(),
            Stage::Slowed { at, until } => {
                Limits { rate: one_in(until.since(at)), burst: None, in_flight: None }
            }
            Stage::Open { at, next, .. } => {
                Limits { rate: one_in(next.since(at)), burst: None, in_flight: Some(1) }
            }
            Stage::Returning { rate, .. } => {
                Limits { rate: Rate::from_parts(rate, 1), burst: None, in_flight: None }
            }
        }
    }

    /// Records how attempts have ended since the last record of a process. `rate` is how many a second succeeded there
    /// in the minute before the failures began, if this is its first record since. `jitter`, any number, spreads probes.
    pub fn record(&mut self, new: Counts, rate: Option<u32>, now: Timestamp, jitter: u64) {
        if matches!(self.stage, Stage::Slowed { until, .. } if now >= until) {
            self.stage = Stage::Closed;
        }
        if new == Counts::default() && rate.is_none() {
            return;
        }
        if !matches!(self.stage, Stage::Returning { .. }) {
            self.rate = self.rate.saturating_add(rate.unwrap_or(0));
        }
        self.count(new, now);
        match self.stage {
            Stage::Closed | Stage::Slowed { .. } if self.window().is_outage() => self.open(now, now, jitter),
            Stage::Open { since, .. } if new.answers > 0 => {
                self.stage = Stage::Returning { since, rate: 1, at: now };
                self.counts = [Counts::default(); 2];
            }
            // An attempt that began before the breaker opened is not a probe.
            Stage::Open { since, failed, next, .. } if new.attempts > 0 && now >= next => {
                let failed = (failed + 1).min(PAUSES.len() as u8 - 1);
                self.stage = Stage::Open { since, failed, at: now, next: now.plus(pause(failed, jitter)) };
            }
            Stage::Returning { since, .. } if self.window().is_outage() || is_lost(new) => {
                self.open(since, now, jitter);
            }
            Stage::Returning { since, rate, at } => self.go_on(new, since, rate, at, now),
            Stage::Closed | Stage::Slowed { .. } | Stage::Open { .. } => {}
        }
    }

    /// Lets no callback begin until a time that the receiver has named, at most [`LONGEST_SLOWED`] from now. An origin
    /// that comes back is probed then.
    pub fn slow(&mut self, until: Timestamp, now: Timestamp) {
        let until = until.min(now.plus(LONGEST_SLOWED));
        match self.stage {
            Stage::Closed if until > now => self.stage = Stage::Slowed { at: now, until },
            Stage::Slowed { until: before, .. } if until > before => {
                self.stage = Stage::Slowed { at: now, until };
            }
            Stage::Open { since, failed, next, .. } if until > next => {
                self.stage = Stage::Open { since, failed, at: now, next: until };
            }
            Stage::Returning { since, .. } if until > now => {
                self.stage = Stage::Open { since, failed: 0, at: now, next: until };
            }
            Stage::Closed | Stage::Slowed { .. } | Stage::Open { .. } | Stage::Returning { .. } => {}
        }
    }

    /// Doubles the rate after a second in which all succeeded; closes after [`WATCH`] at the former rate.
    fn go_on(&mut self, new: Counts, since: Timestamp, rate: u32, at: Timestamp, now: Timestamp) {
        let most = if self.rate == 0 { UNKNOWN_RATE } else { self.rate };
        if new.answers < new.attempts {
            self.stage = Stage::Returning { since, rate, at: now };
        } else if rate >= most {
            if now.since(at) >= WATCH {
                *self = Self::default();
            }
        } else if new.answers > 0 && now.since(at) >= Duration::from_secs(1) {
            self.stage = Stage::Returning { since, rate: rate.saturating_mul(2).min(most), at: now };
        }
    }

    fn open(&mut self, since: Timestamp, now: Timestamp, jitter: u64) {
        self.stage = Stage::Open { since, failed: 0, at: now, next: now.plus(pause(0, jitter)) };
        self.counts = [Counts::default(); 2];
    }

    fn count(&mut self, new: Counts, now: Timestamp) {
        let half = half_of(now);
        self.counts = match half.saturating_sub(self.half) {
            0 => self.counts,
            1 => [Counts::default(), self.counts[0]],
            _ => [Counts::default(); 2],
        };
        self.half = self.half.max(half);
        self.counts[0].add(new);
    }

    fn window(&self) -> Counts {
        let [mut all, before] = self.counts;
        all.add(before);
        all
    }
}

/// Whether callbacks that came back met an origin that is gone again.
const fn is_lost(new: Counts) -> bool {
    new.outages > 0 && new.answers == 0 && new.outages == new.attempts
}

/// The time to the next probe.
fn pause(failed: u8, jitter: u64) -> Duration {
    let longest = 1000 * PAUSES[usize::from(failed).min(PAUSES.len() - 1)];
    Duration::from_millis(longest - jitter % (longest / 5))
}

/// The rate of one callback in this time, as limits keep to it: in the day that an interval is multiplied by.
fn one_in(pause: Duration) -> Option<Rate> {
    const DAY: u64 = 24 * 3600;
    let day_us = Rate::from_parts(1, DAY)?.interval_us();
    let count = day_us / (pause.as_micros() as f64).max(1e5);
    Rate::from_parts(count as u32, DAY)
}

fn half_of(now: Timestamp) -> u64 {
    now.as_millis() / (WINDOW.as_millis() as u64 / 2)
}

#[cfg(test)]
mod tests;
