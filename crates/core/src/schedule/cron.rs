//! Cron expressions of five fields, in a time zone.
//!
//! Hours that are numbers are those of the clock: a time that the zone skips fires once, at the end of the gap, and one
//! that comes twice fires at the first of the two. Where the hour is `*` or a step of it such as `*/2`, time goes on while
//! the clocks change: nothing fires for a skipped hour, and an hour that comes twice fires twice.

use std::fmt;

use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp as Instant, Zoned};

use crate::clock::Timestamp;
use crate::written_time::Zone;

/// The longest expression, in bytes.
const MAX_LENGTH: usize = 256;
/// How many local times may follow each other that are not after the given one. Where clocks are set back by an hour,
/// there are sixty at most; a whole day is the most that any zone was set back by.
const MAX_REPEATED: usize = 2 * 24 * 60;
/// The fields of an expression, and the numbers and names of each.
const FIELDS: [(&str, &str); 5] = [
    ("minute", "0 to 59"),
    ("hour", "0 to 23"),
    ("day of the month", "1 to 31, L, or a day with W"),
    ("month", "1 to 12 or JAN to DEC"),
    ("day of the week", "0 to 7 or SUN to SAT, with # or L behind"),
];
/// The bit of numbers among those of the fields of an expression.
const NUMBERS: u8 = 1;

/// A cron expression in a time zone.
#[derive(Clone, Debug)]
pub struct Cron {
    written: Box<str>,
    parsed: croner::Cron,
    zone: Zone,
    /// Whether its hours go on while the clocks change.
    is_hourly: bool,
}

/// Why a text is not a cron expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CronError(String);

impl CronError {
    /// Says which field of an expression is wrong that cannot be read.
    fn new(written: &str, parser: &CronParser) -> Self {
        let fields: Vec<_> = written.split_whitespace().collect();
        if written.starts_with('@') {
            return Self("there is no such name".to_owned());
        }
        if fields.len() != FIELDS.len() {
            return Self(format!("it has {} fields, not 5", fields.len()));
        }
        for (place, (field, (name, numbers))) in fields.iter().zip(FIELDS).enumerate() {
            let mut alone = ["*"; FIELDS.len()];
            alone[place] = *field;
            if parser.parse(&alone.join(" ")).is_err() {
                return Self(format!(
                    "{field:?} is no {name}, which is {numbers}, or a list, a range or a step of these"
                ));
            }
        }
        Self("its fields do not go together".to_owned())
    }
}

impl Cron {
    /// The form of an expression, for error messages.
    pub const ALLOWED: &'static str = "minute, hour, day of the month, month and day of the week, such as \"0 8 * * MON-FRI\", with lists, ranges, steps, names, L for the last day and # for the n-th weekday of a month; or @hourly, @daily, @weekly, @monthly or @yearly";

    /// Reads an expression.
    ///
    /// # Errors
    /// It cannot be read. Whether it ever fires is not looked at.
    pub fn parse(text: &str, zone: Zone) -> Result<Self, CronError> {
        if text.len() > MAX_LENGTH {
            return Err(CronError(format!("it is longer than {MAX_LENGTH} bytes")));
        }
        let written = text.trim();
        let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
        let parsed = parser.parse(written).map_err(|_| CronError::new(written, &parser))?;
        Ok(Self { written: written.into(), parsed, zone, is_hourly: is_hourly(written) })
    }

    /// Reads an expression and the name of its zone, as they were stored.
    ///
    /// # Errors
    /// They cannot be read.
    pub(super) fn from_stored(text: &str, zone: &str) -> Option<Self> {
        Self::parse(text, Zone::named(zone).ok()?).ok()
    }

    /// The expression as it was written.
    pub fn as_str(&self) -> &str {
        &self.written
    }

    /// The time zone.
    pub const fn zone(&self) -> &Zone {
        &self.zone
    }

    /// The first time after this one; `None` if there is none that can be counted.
    pub(super) fn next_after(&self, time: Timestamp) -> Option<Timestamp> {
        let zone = self.zone.time_zone();
        let from = Instant::from_millisecond(i64::try_from(time.as_millis()).ok()?).ok()?;
        if !self.is_possible() {
            return None;
        }
        let next = if self.is_hourly {
            let next = self.parsed.find_next_occurrence(&from.to_zoned(zone.clone()), false).ok()?;
            next.timestamp()
        } else {
            self.next_of_clock(from, zone)?
        };
        u64::try_from(next.as_millisecond()).ok().map(Timestamp::from_millis)
    }

    /// The first time of the clocks in the zone after this one.
    fn next_of_clock(&self, from: Instant, zone: &TimeZone) -> Option<Instant> {
        let mut local = zone.to_datetime(from);
        for _ in 0..MAX_REPEATED {
            local = self.next_local(local)?;
            let next = instant(local, zone)?;
            // A local time that comes twice has fired the first time.
            if next > from {
                return Some(next);
            }
        }
        None
    }

    /// The first local time after this one that matches, as if clocks never changed.
    fn next_local(&self, local: DateTime) -> Option<DateTime> {
        let as_utc: Zoned = local.to_zoned(TimeZone::UTC).ok()?;
        self.parsed.find_next_occurrence(&as_utc, false).ok().map(|next| next.datetime())
    }

    /// Whether some date may match. Without a weekday, a day such as the 31st of February never comes, and the search for
    /// it takes long.
    fn is_possible(&self) -> bool {
        const LENGTHS: [u16; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let pattern = &self.parsed.pattern;
        // The least number that the field has. `L` and `W` are no numbers.
        let first_day = pattern.days.get_set_values(NUMBERS).into_iter().min();
        let months = pattern.months.get_set_values(NUMBERS);
        let is_numbers = self
            .written
            .split_whitespace()
            .nth(2)
            .is_some_and(|days| days.bytes().all(|b| b.is_ascii_digit() || b",-/*".contains(&b)));
        let Some(first_day) = first_day.filter(|_| is_numbers && pattern.is_dow_wildcard()) else {
            return true;
        };
        months
            .iter()
            .any(|month| LENGTHS.get(usize::from(*month) - 1).is_some_and(|length| first_day <= *length))
    }
}

/// Whether the hours of an expression are `*` or a step of it.
fn is_hourly(written: &str) -> bool {
    let Some(hours) = written.split_whitespace().nth(1) else {
        return written.eq_ignore_ascii_case("@hourly");
    };
    let step = hours.strip_prefix("*/").and_then(|step| step.parse::<u8>().ok());
    hours == "*" || step.is_some_and(|step| step < 24)
}

/// When it is a local time: at the end of the gap if clocks skip it, the first time if it comes twice.
fn instant(local: DateTime, zone: &TimeZone) -> Option<Instant> {
    let ambiguous = zone.to_ambiguous_timestamp(local);
    match ambiguous.offset() {
        // With the offset of after the gap, the instant comes before it.
        AmbiguousOffset::Gap { after, .. } => {
            let before_gap = after.to_timestamp(local).ok()?;
            Some(zone.following(before_gap).next()?.timestamp())
        }
        AmbiguousOffset::Unambiguous { .. } | AmbiguousOffset::Fold { .. } => ambiguous.earlier().ok(),
    }
}

/// The same expression in the same zone.
impl PartialEq for Cron {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written && self.zone == other.zone
    }
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}
