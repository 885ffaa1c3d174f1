//! The counts of a receiver: which jobs arrived, how often, when, and how late.

use std::ops::Range;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::latencies::Latencies;

/// The kind of a job, by the path of its URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Channel {
    /// Jobs that are measured; the only kind in most scenarios.
    Main,
    /// Jobs of the other kind, where there are two.
    Beside,
    /// Jobs that are never answered, and not counted.
    Hang,
}

impl Channel {
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Main => "/main",
            Self::Beside => "/beside",
            Self::Hang => "/hang",
        }
    }

    pub(crate) fn of(path: &str) -> Self {
        [Self::Beside, Self::Hang].into_iter().find(|channel| channel.path() == path).unwrap_or(Self::Main)
    }
}

pub(crate) struct Arrival {
    pub(crate) at: Timestamp,
    pub(crate) due: Option<Timestamp>,
    pub(crate) number: Option<usize>,
    pub(crate) channel: Channel,
}

/// The arrivals of the expected jobs; all others are left out.
pub(crate) struct Board {
    first: usize,
    /// The number of arrivals of each job.
    times: Vec<u8>,
    arrived: usize,
    duplicates: usize,
    since: Option<Instant>,
    until: Option<Instant>,
    early: usize,
    earliest: Duration,
    main: Latencies,
    beside: Latencies,
}

impl Board {
    /// An empty board that expects no job.
    pub(crate) fn new() -> Self {
        Self {
            first: 0,
            times: Vec::new(),
            arrived: 0,
            duplicates: 0,
            since: None,
            until: None,
            early: 0,
            earliest: Duration::ZERO,
            main: Latencies::new(),
            beside: Latencies::new(),
        }
    }

    pub(crate) fn clear(&mut self, numbers: Range<usize>) {
        *self = Self { first: numbers.start, times: vec![0; numbers.len()], ..Self::new() };
    }

    pub(crate) fn record(&mut self, arrival: &Arrival, now: Instant) {
        let index = arrival.number.and_then(|number| number.checked_sub(self.first));
        let Some(times) = index.and_then(|index| self.times.get_mut(index)) else {
            return;
        };
        *times = times.saturating_add(1);
        if *times > 1 {
            self.duplicates += 1;
            return;
        }
        self.arrived += 1;
        self.since.get_or_insert(now);
        self.until = Some(now);
        if let Some(due) = arrival.due {
            self.late(arrival.channel, arrival.at, due);
        }
    }

    fn late(&mut self, channel: Channel, at: Timestamp, due: Timestamp) {
        match Duration::try_from(at.duration_since(due)) {
            Ok(late) => match channel {
                Channel::Main | Channel::Hang => self.main.record(late),
                Channel::Beside => self.beside.record(late),
            },
            Err(_) => {
                self.early += 1;
                self.earliest = self.earliest.max(due.duration_since(at).unsigned_abs());
            }
        }
    }

    /// The number of expected jobs that have arrived.
    pub(crate) fn arrived(&self) -> usize {
        self.arrived
    }

    /// The number of repeated arrivals.
    pub(crate) fn duplicates(&self) -> usize {
        self.duplicates
    }

    /// The number of jobs that arrived before they were due, and the longest time by which one was early.
    pub(crate) fn early(&self) -> (usize, Duration) {
        (self.early, self.earliest)
    }

    pub(crate) fn lateness(&self, channel: Channel) -> &Latencies {
        match channel {
            Channel::Main | Channel::Hang => &self.main,
            Channel::Beside => &self.beside,
        }
    }

    /// Jobs per second, from the first arrival to the last, so that starting up does not count.
    pub(crate) fn rate(&self) -> f64 {
        let between = self.since.zip(self.until).map_or(Duration::ZERO, |(since, until)| until - since);
        self.arrived.saturating_sub(1) as f64 / between.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(number: usize, late_ms: i64) -> Arrival {
        let at = Timestamp::from_millisecond(1_000_000 + late_ms).expect("a time");
        let due = Some(Timestamp::from_millisecond(1_000_000).expect("a time"));
        Arrival { at, due, number: Some(number), channel: Channel::Main }
    }

    #[test]
    fn only_expected_jobs_are_counted_and_each_once() {
        let mut board = Board::new();
        board.clear(10..20);
        let now = Instant::now();
        for number in [9, 10, 19, 19, 20] {
            board.record(&arrival(number, 1), now);
        }
        assert_eq!((board.arrived(), board.duplicates()), (2, 1));
    }

    #[test]
    fn early_arrivals_are_no_lateness() {
        let mut board = Board::new();
        board.clear(0..3);
        for (number, late) in [(0, -7), (1, 0), (2, 4)] {
            board.record(&arrival(number, late), Instant::now());
        }
        assert_eq!(board.early(), (1, Duration::from_millis(7)));
        assert_eq!(board.lateness(Channel::Main).count(), 2);
    }

    #[test]
    fn the_rate_is_of_the_time_between_the_first_and_the_last() {
        let mut board = Board::new();
        board.clear(0..5);
        let start = Instant::now();
        for number in 0..5 {
            board.record(&arrival(number, 1), start + Duration::from_millis(250 * number as u64));
        }
        assert_eq!(board.rate().to_bits(), 4.0_f64.to_bits());
    }

    #[test]
    fn paths_and_channels_belong_together() {
        for channel in [Channel::Main, Channel::Beside, Channel::Hang] {
            assert_eq!(Channel::of(channel.path()), channel);
        }
    }
}
