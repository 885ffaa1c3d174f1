//! The clocks of the stores: computes from readings what time each can have shown at a moment of the host.

use std::collections::BTreeMap;

use super::entry::ClockReading;
use super::records::NEVER;

/// The most by which readings differ without a step, in µs.
const MIN_STEP: u64 = 50_000;

/// A moment by the clock of a store: it lies between these two times, in microseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) earliest: u64,
    pub(crate) latest: u64,
}

impl Moment {
    pub(crate) const fn middle(self) -> u64 {
        self.earliest.midpoint(self.latest)
    }
}

/// The clocks of all stores.
#[derive(Default)]
pub(crate) struct Clocks {
    wall: u64,
    readings: BTreeMap<u8, Vec<ClockReading>>,
}

impl Clocks {
    /// Groups readings by store. `wall` is the host's wall clock in µs at its monotonic time 0.
    pub(crate) fn new(wall: u64, readings: Vec<ClockReading>) -> Self {
        let mut by_store = BTreeMap::<u8, Vec<_>>::new();
        for reading in readings {
            by_store.entry(reading.store).or_default().push(reading);
        }
        by_store.values_mut().for_each(|readings| readings.sort_by_key(|reading| reading.t));
        Self { wall, readings: by_store }
    }

    /// The earliest and the latest time that a store's clock can have shown at the host's time `t`, by the readings
    /// before and after `t`. Returns `None` if the clock was never read.
    pub(crate) fn at(&self, store: u8, t: u64) -> Option<Moment> {
        let readings = self.readings.get(&store)?;
        let after = readings.partition_point(|reading| reading.t <= t);
        let around = &readings[after.saturating_sub(1)..readings.len().min(after + 1)];
        let wall = self.wall + t;
        let least =
            around.iter().map(|reading| reading.ahead.saturating_sub_unsigned(reading.error)).min()?;
        let most = around.iter().map(|reading| reading.ahead.saturating_add_unsigned(reading.error)).max()?;
        Some(Moment { earliest: wall.saturating_add_signed(least), latest: wall.saturating_add_signed(most) })
    }

    /// The earliest and the latest time that a store's clock can have shown between two moments of the host. If `last`
    /// is [`NEVER`], the last reading counts. Returns `None` if the clock was never read.
    pub(crate) fn between(&self, store: u8, first: u64, last: u64) -> Option<Moment> {
        let readings = self.readings.get(&store)?;
        let last = if last == NEVER { readings.last()?.t.max(first) } else { last };
        let mut all =
            Moment { earliest: self.at(store, first)?.earliest, latest: self.at(store, last)?.latest };
        let around = readings.partition_point(|reading| reading.t < first).saturating_sub(1)
            ..readings.len().min(readings.partition_point(|reading| reading.t <= last) + 1);
        for pair in readings[around].windows(2).filter(|pair| is_step(pair)) {
            // The step is anywhere between the two.
            let (from, to) = (self.wall + pair[0].t.max(first), self.wall + pair[1].t.min(last));
            all.earliest = all.earliest.min(from.saturating_add_signed(pair[1].ahead));
            all.latest = all.latest.max(to.saturating_add_signed(pair[0].ahead));
        }
        Some(all)
    }

    /// The middle of [`Self::at`]. A store without readings has the host's clock.
    pub(crate) fn about(&self, store: u8, t: u64) -> u64 {
        self.at(store, t).map_or(self.wall + t, Moment::middle)
    }
}

/// Whether the clock has stepped between two readings: they differ by more than [`MIN_STEP`].
fn is_step(pair: &[ClockReading]) -> bool {
    pair[0].ahead.abs_diff(pair[1].ahead) > MIN_STEP
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(t: u64, ahead: i64) -> ClockReading {
        ClockReading { t, store: 1, ahead, error: 10 }
    }

    #[test]
    fn a_moment_is_between_the_readings_around_it() {
        let clocks = Clocks::new(1_000_000, vec![reading(200, 50), reading(100, -50)]);
        let moment = |t| clocks.at(1, t).map(|moment| (moment.earliest, moment.latest));
        assert_eq!(moment(50), Some((999_990, 1_000_010)));
        assert_eq!(moment(150), Some((1_000_090, 1_000_210)));
        assert_eq!(moment(300), Some((1_000_340, 1_000_360)));
        assert_eq!(clocks.between(1, 50, 300), Some(Moment { earliest: 999_990, latest: 1_000_360 }));
        assert_eq!((clocks.at(0, 50), clocks.about(0, 50)), (None, 1_000_050));
    }
    #[test]
    fn a_clock_that_has_stepped_had_both_times() {
        let ahead = [(100, 0), (200, 0), (210, -90_000), (300, -90_000), (310, 0)];
        let clocks = Clocks::new(1_000_000, ahead.map(|(t, ahead)| reading(t, ahead)).to_vec());
        let between = |first, last| clocks.between(1, first, last).map(|all| (all.earliest, all.latest));
        assert_eq!(between(120, 180), Some((1_000_110, 1_000_190)));
        assert_eq!(between(120, 250), Some((910_200, 1_000_210)), "back after 200");
        assert_eq!(between(220, u64::MAX), Some((910_210, 1_000_320)), "and ahead again");
    }
}
