//! Circuit breakers: when callbacks to an origin stop because nothing there answers, how often one callback probes it,
//! and how fast the others come back. Pure. Processes share the state of each breaker in the list of failing destinations,
//! and it is enforced by limits (`flow`).

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
/// Probes a minute after each failed one: first one a second, in the end one a minute.
const PROBES: [u32; 7] = [60, 30, 15, 8, 4, 2, 1];
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
    /// One callback at a time probes the origin.
    Open {
        /// When it opened.
        since: Timestamp,
        /// How many probes in a row have failed, at most as many as there are rates of probes.
        failed: u8,
        /// When it opened, or the last probe failed.
        at: Timestamp,
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

    /// Whether callbacks go as ever, and nothing has been counted for a whole window.
    pub fn is_idle(&self, now: Timestamp) -> bool {
        matches!(self.stage, Stage::Closed) && half_of(now).saturating_sub(self.half) > 1
    }

    /// What limits the callbacks to the origin.
    pub fn limits(&self) -> Limits {
        let per = |count, seconds| Rate::from_parts(count, seconds);
        match self.stage {
            Stage::Closed => Limits::default(),
            Stage::Open { failed, .. } => {
                Limits { rate: per(probes_a_minute(failed), 60), burst: None, in_flight: Some(1) }
            }
            Stage::Returning { rate, .. } => Limits { rate: per(rate, 1), burst: None, in_flight: None },
        }
    }

    /// Records how attempts have ended since the last record of a process. `rate` is how many a second succeeded there
    /// in the minute before the failures began, if this is its first record since.
    pub fn record(&mut self, new: Counts, rate: Option<u32>, now: Timestamp) {
        if new == Counts::default() && rate.is_none() {
            return;
        }
        if !matches!(self.stage, Stage::Returning { .. }) {
            self.rate = self.rate.saturating_add(rate.unwrap_or(0));
        }
        self.count(new, now);
        match self.stage {
            Stage::Closed if self.window().is_outage() => self.open(now, now),
            Stage::Open { since, .. } if new.answers > 0 => {
                self.stage = Stage::Returning { since, rate: 1, at: now };
                self.counts = [Counts::default(); 2];
            }
            // An attempt that began before the breaker opened is not a probe.
            Stage::Open { since, failed, at } if new.outages > 0 && now.since(at) >= pause(failed) => {
                let failed = (failed + 1).min(PROBES.len() as u8 - 1);
                self.stage = Stage::Open { since, failed, at: now };
            }
            Stage::Returning { since, .. } if self.window().is_outage() || is_lost(new) => {
                self.open(since, now);
            }
            Stage::Returning { since, rate, at } => self.go_on(new, since, rate, at, now),
            Stage::Closed | Stage::Open { .. } => {}
        }
    }

    /// Doubles the rate after a second in which all succeeded; closes after [`WATCH`] at the former rate.
    fn go_on(&mut self, new: Counts, since: Timestamp, rate: u32, at: Timestamp, now: Timestamp) {
        let most = if self.rate == 0 { UNKNOWN_RATE } else { self.rate };
        if new.outages > 0 {
            self.stage = Stage::Returning { since, rate, at: now };
        } else if rate >= most {
            if now.since(at) >= WATCH {
                *self = Self::default();
            }
        } else if new.answers > 0 && now.since(at) >= Duration::from_secs(1) {
            self.stage = Stage::Returning { since, rate: rate.saturating_mul(2).min(most), at: now };
        }
    }

    fn open(&mut self, since: Timestamp, now: Timestamp) {
        self.stage = Stage::Open { since, failed: 0, at: now };
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

fn probes_a_minute(failed: u8) -> u32 {
    PROBES[usize::from(failed).min(PROBES.len() - 1)]
}

/// The time between two probes.
fn pause(failed: u8) -> Duration {
    Duration::from_secs(60) / probes_a_minute(failed)
}

fn half_of(now: Timestamp) -> u64 {
    now.as_millis() / (WINDOW.as_millis() as u64 / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(1_800_000_000_000 + ms)
    }

    fn outages(n: u32) -> Counts {
        Counts { attempts: n, outages: n, answers: 0 }
    }

    fn answers(n: u32) -> Counts {
        Counts { attempts: n, outages: 0, answers: n }
    }

    fn is_open(breaker: &Breaker) -> bool {
        matches!(breaker.stage, Stage::Open { .. })
    }

    fn rate(breaker: &Breaker) -> Option<String> {
        breaker.limits().rate.map(|rate| rate.to_string())
    }

    fn opened() -> Breaker {
        let mut breaker = Breaker::default();
        breaker.record(outages(20), Some(100), at(0));
        assert!(is_open(&breaker));
        breaker
    }

    #[test]
    fn a_breaker_opens_after_twenty_attempts_of_which_half_met_an_outage_and_none_an_answer() {
        for (counts, opens) in [
            (outages(19), false),
            (outages(20), true),
            (Counts { attempts: 40, outages: 20, answers: 0 }, true),
            (Counts { attempts: 40, outages: 19, answers: 0 }, false),
            (Counts { attempts: 40, outages: 39, answers: 1 }, false),
        ] {
            let mut breaker = Breaker::default();
            breaker.record(counts, None, at(0));
            assert_eq!(is_open(&breaker), opens, "{counts:?}");
        }
    }

    #[test]
    fn only_the_attempts_of_half_a_minute_count() {
        let mut breaker = Breaker::default();
        breaker.record(outages(10), None, at(0));
        breaker.record(outages(9), None, at(16_000));
        assert!(!is_open(&breaker));
        breaker.record(outages(1), None, at(29_000));
        assert!(is_open(&breaker), "twenty in 29 s");
        let mut breaker = Breaker::default();
        breaker.record(outages(19), None, at(0));
        breaker.record(outages(19), None, at(46_000));
        assert!(!is_open(&breaker));
        assert!(!breaker.is_idle(at(60_000)));
        assert!(breaker.is_idle(at(90_000)));
    }

    #[test]
    fn probes_become_rarer_down_to_one_a_minute() {
        let mut breaker = opened();
        assert_eq!(breaker.limits().in_flight, Some(1));
        let (mut now, mut rates) = (0, Vec::new());
        for _ in 0..8 {
            rates.push(rate(&breaker).unwrap());
            // What was in flight when it opened, or when the last probe failed, is none.
            breaker.record(outages(64), None, at(now + 100));
            assert_eq!(rate(&breaker).as_deref(), rates.last().map(String::as_str));
            now += 61_000;
            breaker.record(outages(1), None, at(now));
        }
        assert_eq!(rates, ["60/m", "30/m", "15/m", "8/m", "4/m", "2/m", "1/m", "1/m"]);
    }

    #[test]
    fn an_origin_that_answers_comes_back_twice_as_fast_each_second() {
        let mut breaker = opened();
        breaker.record(answers(1), None, at(10_000));
        assert_eq!(breaker.limits().in_flight, None);
        let mut rates = vec![rate(&breaker).unwrap()];
        for second in 11..19 {
            breaker.record(answers(1), None, at(second * 1000 - 500));
            assert_eq!(rate(&breaker).as_ref(), rates.last(), "not before a second is over");
            breaker.record(answers(1), None, at(second * 1000));
            rates.push(rate(&breaker).unwrap());
        }
        assert_eq!(rates, ["1/s", "2/s", "4/s", "8/s", "16/s", "32/s", "64/s", "100/s", "100/s"]);
        breaker.record(answers(1), None, at(17_000 + 59_000));
        assert_eq!(rate(&breaker).as_deref(), Some("100/s"));
        breaker.record(answers(1), None, at(17_000 + 60_000));
        assert_eq!(breaker, Breaker::default());
    }

    #[test]
    fn a_failure_on_the_way_back_holds_the_rate_and_an_outage_opens_again() {
        let mut breaker = opened();
        breaker.record(answers(1), None, at(10_000));
        breaker.record(answers(1), None, at(11_000));
        breaker.record(Counts { attempts: 2, outages: 1, answers: 1 }, None, at(12_000));
        assert_eq!(rate(&breaker).as_deref(), Some("2/s"));
        breaker.record(answers(1), None, at(12_900));
        assert_eq!(rate(&breaker).as_deref(), Some("2/s"), "a second has to be clean");
        breaker.record(answers(1), None, at(13_000));
        assert_eq!(rate(&breaker).as_deref(), Some("4/s"));
        breaker.record(outages(1), None, at(14_000));
        assert!(is_open(&breaker));
        assert_eq!(rate(&breaker).as_deref(), Some("60/m"));
    }
}
