//! The local times of a cron expression: which minutes match, and the next one. Knows no zone and no change of clocks.

use jiff::SignedDuration;
use jiff::civil::{Date, DateTime};

use super::dates::Dates;

/// The local times that match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    /// The minutes, bits 0 to 59; one at least.
    pub(super) minutes: u64,
    /// The hours, bits 0 to 23; one at least.
    pub(super) hours: u32,
    pub(super) dates: Dates,
}

impl Times {
    /// The first matching minute after the minute of `local`; `None` if there is none.
    pub(super) fn after(&self, local: DateTime) -> Option<DateTime> {
        // The minute after. Its seconds do not matter.
        let start = local.checked_add(SignedDuration::from_mins(1)).ok()?;
        let date = self.dates.first_from(start.date())?;
        if date > start.date() {
            return self.first_of(date);
        }
        match self.time_from(start.hour().unsigned_abs(), start.minute().unsigned_abs()) {
            Some((hour, minute)) => at(date, hour, minute),
            None => self.first_of(self.dates.first_from(date.tomorrow().ok()?)?),
        }
    }

    fn first_of(&self, date: Date) -> Option<DateTime> {
        at(date, self.hours.trailing_zeros(), self.minutes.trailing_zeros())
    }

    /// The first matching hour and minute of a day that is not before this one; `None` if the day has none left.
    fn time_from(&self, hour: u8, minute: u8) -> Option<(u32, u32)> {
        let rest = self.minutes & (u64::MAX << minute);
        if self.hours >> hour & 1 == 1 && rest != 0 {
            return Some((hour.into(), rest.trailing_zeros()));
        }
        let later = self.hours & (u32::MAX << hour << 1);
        (later != 0).then(|| (later.trailing_zeros(), self.minutes.trailing_zeros()))
    }
}

fn at(date: Date, hour: u32, minute: u32) -> Option<DateTime> {
    let (hour, minute) = (i8::try_from(hour).ok()?, i8::try_from(minute).ok()?);
    Some(date.at(hour, minute, 0, 0))
}
