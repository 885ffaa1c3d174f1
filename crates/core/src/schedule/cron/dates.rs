//! The days of a cron expression: which days of a month match, and the next one. Knows no time of day and no zone.

use jiff::civil::Date;

/// How many months a search covers. The next equal date on the same weekday is never further away: the 29th of February
/// on a Sunday comes after 40 years at the most, as 2100 is not a leap year.
const MAX_MONTHS: usize = 40 * 12 + 1;

/// Days of the week: bits 0 to 6 for Sunday to Saturday.
const EVERY_WEEKDAY: u8 = 0x7f;
const SUNDAY: u8 = 0;
const SATURDAY: u8 = 6;

/// Days of a month. A bit stands for the number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Days {
    pub(super) numbers: u32,
    /// Days whose nearest day from Monday to Friday is meant, within the month.
    pub(super) nearest: u32,
    pub(super) has_last: bool,
    /// Whether it is the last day from Monday to Friday.
    pub(super) has_last_workday: bool,
}

/// Days of the week. A bit stands for the number, 0 for Sunday.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Weekdays {
    pub(super) all: u8,
    /// The first to the fifth of the month.
    pub(super) nth: [u8; 5],
    pub(super) last: u8,
}

/// How the day of the month and the day of the week are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Match {
    Both,
    Either,
}

/// The dates that match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dates {
    /// The months, bits 1 to 12.
    pub(super) months: u16,
    pub(super) days: Days,
    pub(super) weekdays: Weekdays,
    pub(super) needs: Match,
}

/// A month: the weekday of its first day and how many days it has.
#[derive(Clone, Copy)]
struct Month {
    first_weekday: u8,
    length: u8,
}

impl Dates {
    /// The first matching date that is not before this one; `None` if the next [`MAX_MONTHS`] months have none.
    pub(super) fn first_from(&self, date: Date) -> Option<Date> {
        let least = u32::MAX << date.day();
        let months = months_from(date).zip(std::iter::once(least).chain(std::iter::repeat(u32::MAX)));
        for (first, least) in months {
            if self.months >> first.month() & 1 == 0 {
                continue;
            }
            let days = self.within(Month::of(first)) & least;
            if days != 0 {
                let day = i8::try_from(days.trailing_zeros()).ok()?;
                return Date::new(first.year(), first.month(), day).ok();
            }
        }
        None
    }

    /// The days of a month that match, as bits 1 to 31.
    fn within(&self, month: Month) -> u32 {
        let (days, weekdays) = (self.days.within(month), self.weekdays.within(month));
        match self.needs {
            Match::Both => days & weekdays,
            Match::Either => days | weekdays,
        }
    }
}

/// The first days of a date's month and of the months after it, [`MAX_MONTHS`] in all.
fn months_from(date: Date) -> impl Iterator<Item = Date> {
    let following = |first: &Date| match first.month() {
        12 => Date::new(first.year().checked_add(1)?, 1, 1).ok(),
        month => Date::new(first.year(), month + 1, 1).ok(),
    };
    std::iter::successors(Some(date.first_of_month()), following).take(MAX_MONTHS)
}

impl Month {
    fn of(first: Date) -> Self {
        Self {
            first_weekday: first.weekday().to_sunday_zero_offset().unsigned_abs(),
            length: first.days_in_month().unsigned_abs(),
        }
    }

    const fn weekday(self, day: u8) -> u8 {
        (self.first_weekday + day - 1) % 7
    }

    const fn days(self) -> u32 {
        (u32::MAX >> (31 - self.length)) & !1
    }

    /// The day from Monday to Friday that is nearest to a day, within the month.
    const fn nearest_workday(self, day: u8) -> u8 {
        match self.weekday(day) {
            SATURDAY if day == 1 => 3,
            SATURDAY => day - 1,
            SUNDAY if day == self.length => day - 2,
            SUNDAY => day + 1,
            _ => day,
        }
    }
}

impl Days {
    fn within(&self, month: Month) -> u32 {
        let mut days = self.numbers & month.days();
        let nearest = (1..=month.length).filter(|day| self.nearest >> day & 1 == 1);
        for day in nearest.chain(self.has_last_workday.then_some(month.length)) {
            days |= 1 << month.nearest_workday(day);
        }
        if self.has_last {
            days |= 1 << month.length;
        }
        days
    }
}

impl Weekdays {
    fn within(&self, month: Month) -> u32 {
        if self.all == EVERY_WEEKDAY {
            return month.days();
        }
        let matches = |day: &u8| {
            let is_last = day + 7 > month.length;
            let sets = self.all | self.nth[usize::from((day - 1) / 7)] | if is_last { self.last } else { 0 };
            sets >> month.weekday(*day) & 1 == 1
        };
        (1..=month.length).filter(matches).fold(0, |days, day| days | 1 << day)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(year: i16, month: i8, day: i8) -> Date {
        Date::new(year, month, day).unwrap()
    }

    #[test]
    fn a_search_looks_at_as_many_months_as_the_rarest_day_needs_and_no_more() {
        assert_eq!(months_from(date(2026, 11, 28)).count(), MAX_MONTHS);
        // The calendar repeats itself after 400 years.
        let mut longest = 0;
        for weekday in 0..7 {
            let is_like_it = |first: &Date| {
                first.month() == 2 && first.in_leap_year() && Month::of(*first).weekday(29) == weekday
            };
            let all = (0..2 * 400 * 12).map(|n| date(2000 + n / 12, i8::try_from(n % 12).unwrap() + 1, 1));
            let found: Vec<_> =
                all.enumerate().filter(|(_, first)| is_like_it(first)).map(|(n, _)| n).collect();
            longest = found.windows(2).map(|pair| pair[1] - pair[0]).chain([longest]).max().unwrap();
        }
        assert_eq!(longest + 1, MAX_MONTHS);
    }

    #[test]
    fn the_nearest_workday_stays_within_its_month() {
        for (month, day, nearest) in [
            // The 1st is a Saturday, the 2nd a Sunday.
            (date(2026, 8, 1), 1, 3),
            (date(2026, 8, 1), 2, 3),
            (date(2026, 8, 1), 8, 7),
            (date(2026, 8, 1), 31, 31),
            // The 31st is a Sunday, the 30th a Saturday.
            (date(2026, 5, 1), 31, 29),
            (date(2026, 5, 1), 30, 29),
            (date(2026, 2, 1), 28, 27),
            (date(2026, 2, 1), 1, 2),
        ] {
            assert_eq!(Month::of(month).nearest_workday(day), nearest, "{month} {day}");
        }
    }
}
