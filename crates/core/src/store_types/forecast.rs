//! The forecast: how many delayed jobs come due in each slot of time. Stores count parts of their indexes, large ones
//! by a sample; here the counts and the sampling errors are added up.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

pub const MIN_FORECAST_SLOT: Duration = Duration::from_secs(60);
pub const MAX_FORECAST_SLOT: Duration = Duration::from_secs(86_400);
/// How far ahead a forecast looks at most.
pub const MAX_FORECAST: Duration = Duration::from_secs(31 * 86_400);
pub const MAX_FORECAST_SLOTS: usize = 1000;

/// The slots of a forecast, one after the other. Times are in ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForecastSlots {
    /// When the first slot begins.
    pub first: u64,
    /// How long each is; not 0.
    pub length: u64,
    pub count: usize,
}

impl ForecastSlots {
    /// The slots from the one that contains `now` up to `until` ms later. They begin at multiples of their length since
    /// 1970.
    pub fn from(now: u64, length: u64, until: u64) -> Self {
        let first = now / length * length;
        let count = usize::try_from((now + until - first).div_ceil(length)).unwrap_or(usize::MAX);
        Self { first, length, count }
    }

    /// When the last slot ends.
    pub const fn end(&self) -> u64 {
        self.first + self.length * self.count as u64
    }

    pub const fn begin(&self, slot: usize) -> u64 {
        self.first + self.length * slot as u64
    }

    /// The slot that contains a time; `None` if no slot does.
    pub fn slot_of(&self, at: u64) -> Option<usize> {
        let slot = at.checked_sub(self.first)? / self.length;
        usize::try_from(slot).ok().filter(|slot| *slot < self.count)
    }
}

/// Jobs of a slot: those that wait for their first attempt, and those that have failed before.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SlotJobs {
    /// Jobs that have not failed yet.
    pub jobs: f64,
    /// Jobs that wait for a retry.
    pub retries: f64,
}

/// A part of an index that was read, whole or by a sample.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForecastPart {
    /// How many entries it has.
    pub size: u64,
    /// How many of them were read.
    pub read: u64,
    /// The slots in which its entries can lie.
    pub slots: Range<usize>,
    /// What was found among those that were read.
    pub found: BTreeMap<usize, (u64, u64)>,
}

/// The jobs that come due in each slot, with what else a forecast shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Forecast {
    pub slots: Vec<SlotJobs>,
    /// Jobs that are due already and wait to be delivered.
    pub ready: u64,
    /// How many outcomes with a lateness were recorded in each of the last minutes that are over, by minute since 1970.
    pub delivered: BTreeMap<u64, u64>,
    /// The variances of the two numbers of each slot.
    variances: Vec<SlotJobs>,
}

impl Forecast {
    /// A forecast of `slots` slots without jobs.
    pub fn new(slots: usize) -> Self {
        let empty = vec![SlotJobs::default(); slots];
        Self { slots: empty.clone(), ready: 0, delivered: BTreeMap::new(), variances: empty }
    }

    /// Adds a part. In a sample each job read counts for `size / read` jobs, and each slot of it gets a sampling error.
    pub fn add(&mut self, part: &ForecastPart) {
        let weight = part.size as f64 / (part.read.max(1)) as f64;
        for (slot, (jobs, retries)) in &part.found {
            if let Some(sum) = self.slots.get_mut(*slot) {
                sum.jobs += *jobs as f64 * weight;
                sum.retries += *retries as f64 * weight;
            }
        }
        if part.read >= part.size {
            return;
        }
        for slot in part.slots.clone() {
            let (jobs, retries) = part.found.get(&slot).copied().unwrap_or_default();
            if let Some(sum) = self.variances.get_mut(slot) {
                sum.jobs += variance(part.size, part.read, jobs);
                sum.retries += variance(part.size, part.read, retries);
            }
        }
    }

    /// Adds the forecast of another shard, with the same slots.
    pub fn merge(&mut self, other: &Self) {
        for (own, more) in [(&mut self.slots, &other.slots), (&mut self.variances, &other.variances)] {
            for (sum, more) in own.iter_mut().zip(more) {
                sum.jobs += more.jobs;
                sum.retries += more.retries;
            }
        }
        self.ready += other.ready;
        for (minute, n) in &other.delivered {
            *self.delivered.entry(*minute).or_default() += n;
        }
    }

    /// How far a number of a slot can be off, as a share of the jobs of the fullest slot: half the width of the widest
    /// 95 % confidence interval. `None` if everything was counted.
    pub fn error(&self) -> Option<f64> {
        let widest = self.variances.iter().flat_map(|of| [of.jobs, of.retries]).fold(0.0, f64::max);
        let fullest = self.slots.iter().map(|of| of.jobs + of.retries).fold(1.0, f64::max);
        (widest > 0.0).then(|| 1.96 * widest.sqrt() / fullest)
    }
}

/// The variance of an estimate from a sample drawn without replacement, by Agresti and Coull, so that a sample in which
/// nothing was found has one too.
fn variance(size: u64, read: u64, found: u64) -> f64 {
    let (size, read, found) = (size as f64, read as f64, found as f64);
    let share = (found + 2.0) / (read + 4.0);
    size * size * share * (1.0 - share) / (read + 4.0) * (1.0 - read / size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_begin_at_multiples_of_their_length_and_cover_the_time() {
        let slots = ForecastSlots::from(1_250, 100, 300);
        assert_eq!(slots, ForecastSlots { first: 1_200, length: 100, count: 4 });
        assert_eq!((slots.end(), slots.begin(1)), (1_600, 1_300));
        assert_eq!([1_199, 1_200, 1_599, 1_600].map(|at| slots.slot_of(at)), [None, Some(0), Some(3), None]);
    }

    #[test]
    fn what_was_read_whole_has_no_error_and_a_sample_has_one() {
        let mut forecast = Forecast::new(2);
        let whole = ForecastPart { size: 3, read: 3, slots: 0..2, found: BTreeMap::from([(0, (2, 1))]) };
        forecast.add(&whole);
        assert_eq!((forecast.slots[0], forecast.error()), (SlotJobs { jobs: 2.0, retries: 1.0 }, None));
        let sample =
            ForecastPart { size: 1000, read: 100, slots: 0..2, found: BTreeMap::from([(1, (50, 0))]) };
        forecast.add(&sample);
        assert_eq!(forecast.slots[1], SlotJobs { jobs: 500.0, retries: 0.0 });
        let error = forecast.error().unwrap();
        assert!((0.15..0.2).contains(&error), "{error}");
    }
}
