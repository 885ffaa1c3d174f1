//! Cron expressions of five fields, in a time zone.
//!
//! Hours that are numbers are those of the clock: a time that the zone skips fires once, at the end of the gap, and one
//! that comes twice fires at the first of the two. Where the hours begin with `*`, such as `*/2`, time goes on while
//! the clocks change: nothing fires for a skipped hour, and an hour that comes twice fires twice.

mod dates;
mod grammar;
mod times;

use std::fmt;

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp as Instant};
use serde::{Deserialize, Serialize};

pub use self::grammar::CronError;
use self::grammar::Parsed;
use self::times::Times;
use crate::clock::Timestamp;
use crate::written_time::Zone;

/// How many local times may follow each other that are not after the given one. Where clocks are set back by an hour,
/// there are sixty at most; a whole day is the most that any zone was set back by.
const MAX_REPEATED: usize = 2 * 24 * 60;
/// How many changes of clocks a search may meet: some around a time that is found, and those around times that the
/// clocks skip, of which there are hardly two in a row.
const MAX_CHANGES: usize = 64;
/// Longer than any clock was ever set forward or back.
const LONGEST_CHANGE: SignedDuration = SignedDuration::from_hours(48);

/// A cron expression in a time zone.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "(String, String)", into = "(String, String)")]
pub struct Cron {
    written: Box<str>,
    times: Times,
    zone: Zone,
    /// Whether its hours go on while the clocks change.
    is_hourly: bool,
}

impl Cron {
    /// The form of an expression, for error messages.
    pub const ALLOWED: &'static str = "minute, hour, day of the month, month and day of the week, such as \"0 8 * * MON-FRI\", with lists, ranges, steps, names, L for the last day, W for the nearest weekday and # for the n-th weekday of a month; or @hourly, @daily, @weekly, @monthly or @yearly";

    /// Reads an expression.
    ///
    /// # Errors
    /// What cannot be read. An expression that never fires is accepted.
    pub fn parse(text: &str, zone: Zone) -> Result<Self, CronError> {
        let written = text.trim_matches([' ', '\t', '\r', '\n']);
        let Parsed { times, is_any_hour } = grammar::parse(written)?;
        Ok(Self { written: written.into(), times, zone, is_hourly: is_any_hour })
    }

    /// The expression as it was written.
    pub fn as_str(&self) -> &str {
        &self.written
    }

    pub const fn zone(&self) -> &Zone {
        &self.zone
    }

    /// Whether both mean the same times in the same zone, even if they are written differently.
    pub(super) fn means(&self, other: &Self) -> bool {
        (&self.times, self.is_hourly, &self.zone) == (&other.times, other.is_hourly, &other.zone)
    }

    /// The first time after this one; `None` if a bounded search finds none.
    pub(super) fn next_after(&self, time: Timestamp) -> Option<Timestamp> {
        let zone = self.zone.time_zone();
        let from = Instant::from_millisecond(i64::try_from(time.as_millis()).ok()?).ok()?;
        let next =
            if self.is_hourly { self.next_elapsed(from, zone)? } else { self.next_of_clock(from, zone)? };
        u64::try_from(next.as_millisecond()).ok().map(Timestamp::from_millis)
    }

    /// The first instant after this one whose local time matches. Of a local time that comes twice, the first counts.
    fn next_of_clock(&self, from: Instant, zone: &TimeZone) -> Option<Instant> {
        let mut local = zone.to_datetime(from);
        for _ in 0..MAX_REPEATED {
            local = self.times.after(local)?;
            let next = instant(local, zone)?;
            // A local time that comes twice has fired the first time.
            if next > from {
                return Some(next);
            }
        }
        None
    }

    /// The first instant after this one at which the clocks in the zone show a time that matches.
    fn next_elapsed(&self, from: Instant, zone: &TimeZone) -> Option<Instant> {
        let moment = SignedDuration::from_nanos(1);
        // From here on the clocks run evenly, up to their next change.
        let mut start = from.checked_add(moment).ok()?;
        for _ in 0..MAX_CHANGES {
            let offset = zone.to_offset(start);
            let local = self.times.after(offset.to_datetime(start.checked_sub(moment).ok()?))?;
            let next = offset.to_timestamp(local).ok()?;
            let Some(change) = zone.following(start).next().map(|change| change.timestamp()) else {
                return Some(next);
            };
            if next < change {
                return Some(next);
            }
            // Set back, the clocks may show earlier times again; otherwise nothing matches before `next`.
            let is_near = change.duration_since(start) < LONGEST_CHANGE;
            let shortly_before = next.checked_sub(LONGEST_CHANGE).ok()?;
            start = if is_near { change } else { change.max(shortly_before) };
        }
        None
    }
}

/// The instant of a local time: the end of the gap if clocks skip it, the first one of two. `None` if out of range.
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

/// Reads an expression and the name of its zone, as they are stored.
impl TryFrom<(String, String)> for Cron {
    type Error = &'static str;

    fn try_from((text, zone): (String, String)) -> Result<Self, Self::Error> {
        Zone::named(&zone).ok().and_then(|zone| Self::parse(&text, zone).ok()).ok_or(Self::ALLOWED)
    }
}

impl From<Cron> for (String, String) {
    fn from(cron: Cron) -> Self {
        (cron.written.into(), cron.zone.to_string())
    }
}

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
