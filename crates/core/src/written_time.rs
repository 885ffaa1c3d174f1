//! Times as people write them: by RFC 3339, with annotations by RFC 9557, or as the local time of a time zone. Parses
//! them and resolves them to points in time. The zones are in `zone`.

mod zone;

use jiff::civil::DateTime;
use jiff::fmt::temporal::{Pieces, PiecesOffset, TimeZoneAnnotationKind};
use jiff::tz::{AmbiguousOffset, Offset};

pub use self::zone::Zone;
use crate::clock::Timestamp;

/// The form of a time, for error messages.
pub const ALLOWED_TIME: &str = "a time by RFC 3339, such as 2026-11-20T09:30:00Z";
/// The longest text of a time, in bytes.
pub const MAX_TIME: usize = 256;
const ALLOWED_ANNOTATION: &str =
    "at most one time zone by RFC 9557, such as [Europe/Berlin], and no annotation with ! that asks for more";
const ALLOWED_OFFSET: &str = "the offset of the zone at that time, or the local time without an offset";

/// Why a text is not a time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    /// It is longer than [`MAX_TIME`].
    #[error("longer than {} bytes", MAX_TIME)]
    TooLong,
    /// It is not a date and time by RFC 3339.
    #[error("not RFC 3339")]
    Unreadable,
    #[error("beyond the years that can be counted")]
    OutOfRange,
    /// It is a local time without an offset or a time zone.
    #[error("a local time without an offset or a time zone")]
    Local,
    /// What follows the time are not annotations, or one of them is critical (RFC 9557, section 3.3).
    #[error("what begins with [ is not a time zone by RFC 9557")]
    Annotation,
    /// There is no such time zone.
    #[error("{0:?} is not a known time zone")]
    UnknownZone(String),
    /// The annotation and the time zone beside it differ.
    #[error("its annotation is not the time zone {0}")]
    OtherZone(String),
    /// The zone has another offset at that time.
    #[error("{zone} is at {actual} then, not at {written}")]
    OtherOffset {
        zone: String,
        /// Its offsets at that time: one, or two if clocks are set back.
        actual: String,
        written: String,
    },
    /// Clocks skip the time in its zone, so no offset is right.
    #[error("there is no such time in {0}, where clocks skip it")]
    Skipped(String),
}

impl TimeError {
    /// What an error message says is allowed, for a field that must be a point in time by itself.
    pub fn allowed(&self) -> &'static str {
        match self {
            Self::TooLong | Self::Unreadable | Self::OutOfRange => ALLOWED_TIME,
            Self::Local => "an offset, such as 2026-11-20T09:30:00Z or 2026-11-20T10:30:00+01:00",
            Self::Annotation => ALLOWED_ANNOTATION,
            Self::UnknownZone(_) => Zone::ALLOWED,
            Self::OtherZone(_) => "one time zone, in the time or beside it",
            Self::OtherOffset { .. } | Self::Skipped(_) => ALLOWED_OFFSET,
        }
    }
}

/// A time as written, which may need a zone to be a point in time.
#[derive(Clone, Debug)]
pub struct WrittenTime {
    local: DateTime,
    offset: WrittenOffset,
    /// The zone of the annotation, or why it is not known.
    zone: Option<Result<Zone, TimeError>>,
}

#[derive(Clone, Copy, Debug)]
enum WrittenOffset {
    No,
    /// `Z` or `-00:00`: the time is in UTC, and its local offset is not known (RFC 9557, section 2.2).
    Utc,
    /// Another one.
    Offset(Offset),
}

impl WrittenTime {
    /// Reads a time. A second 60 is read as 59.
    ///
    /// # Errors
    /// The text is too long or not a time, or what follows the time are not annotations. A zone may still be unknown.
    pub fn parse(text: &str) -> Result<Self, TimeError> {
        if text.len() > MAX_TIME {
            return Err(TimeError::TooLong);
        }
        let pieces = Pieces::parse(text).map_err(|_| {
            let time = text.split('[').next().unwrap_or_default();
            if time != text && Pieces::parse(time).is_ok() {
                TimeError::Annotation
            } else {
                TimeError::Unreadable
            }
        })?;
        let of_day = pieces.time().ok_or(TimeError::Unreadable)?;
        let offset = match pieces.offset() {
            None => WrittenOffset::No,
            Some(PiecesOffset::Numeric(given)) if !(given.is_negative() && given.offset().is_zero()) => {
                WrittenOffset::Offset(given.offset())
            }
            Some(_) => WrittenOffset::Utc,
        };
        let zone = pieces.time_zone_annotation().map(|annotation| match annotation.kind() {
            TimeZoneAnnotationKind::Named(name) => Zone::named(name.as_str()),
            TimeZoneAnnotationKind::Offset(offset) => Ok(Zone::fixed(*offset)),
            _ => Err(TimeError::Annotation),
        });
        Ok(Self { local: pieces.date().to_datetime(of_day), offset, zone })
    }

    /// Whether the time needs a zone that it does not name itself.
    pub fn is_local(&self) -> bool {
        self.zone.is_none() && matches!(self.offset, WrittenOffset::No)
    }

    /// The point in time, in milliseconds rounded up, at least 1970. A local time is read in the zone of its
    /// annotation, else in `zone`: one that clocks skip counts as later by the length of the gap, one that occurs twice
    /// is the earlier one (both as in RFC 5545, section 3.3.5).
    ///
    /// # Errors
    /// There is no zone for a local time or no such zone, offset, annotation and `zone` differ, or it is out of range.
    pub fn resolve(&self, zone: Option<&Zone>) -> Result<Timestamp, TimeError> {
        let own = self.zone.clone().transpose()?;
        if let (Some(own), Some(given)) = (&own, zone)
            && own != given
        {
            return Err(TimeError::OtherZone(given.to_string()));
        }
        let time = match (self.offset, own.as_ref().or(zone)) {
            (WrittenOffset::No, None) => return Err(TimeError::Local),
            (WrittenOffset::No, Some(zone)) => zone.offsets(self.local).compatible(),
            (WrittenOffset::Utc, _) => Offset::UTC.to_timestamp(self.local),
            (WrittenOffset::Offset(offset), None) => offset.to_timestamp(self.local),
            (WrittenOffset::Offset(offset), Some(zone)) => {
                self.agreed(offset, zone)?.to_timestamp(self.local)
            }
        };
        Ok(Timestamp::from_millis(millis_up(time.map_err(|_| TimeError::OutOfRange)?)))
    }

    fn agreed(&self, written: Offset, zone: &Zone) -> Result<Offset, TimeError> {
        let (first, second) = match zone.offsets(self.local).offset() {
            AmbiguousOffset::Unambiguous { offset } => (offset, offset),
            AmbiguousOffset::Fold { before, after } => (before, after),
            AmbiguousOffset::Gap { .. } => return Err(TimeError::Skipped(zone.to_string())),
        };
        [first, second].into_iter().find(|actual| is_written_as(*actual, written)).ok_or_else(|| {
            let second = if first == second { String::new() } else { format!(" or {}", shown(second)) };
            let actual = shown(first) + &second;
            TimeError::OtherOffset { zone: zone.to_string(), actual, written: shown(written) }
        })
    }
}

/// Whether an offset can be written like this. Offsets of earlier times have seconds; RFC 3339 cannot write these, so
/// such an offset can also be written rounded to minutes.
fn is_written_as(actual: Offset, written: Offset) -> bool {
    let rounded = |offset: Offset| offset.round(jiff::Unit::Minute).ok();
    actual == written || rounded(actual) == Some(written)
}

/// An offset as RFC 3339 writes it, followed by its seconds if it has any.
fn shown(offset: Offset) -> String {
    let (seconds, sign) = (offset.seconds().unsigned_abs(), if offset.is_negative() { '-' } else { '+' });
    let minutes = format!("{sign}{:02}:{:02}", seconds / 3600, seconds / 60 % 60);
    if seconds % 60 == 0 { minutes } else { format!("{minutes}:{:02}", seconds % 60) }
}

/// Parses a time that is a point in time by itself, in milliseconds rounded up.
///
/// # Errors
/// What is wrong, also a local time without an offset; [`TimeError::allowed`] says what is allowed.
pub fn parse_time(text: &str) -> Result<Timestamp, TimeError> {
    WrittenTime::parse(text)?.resolve(None)
}

/// A time in whole milliseconds, rounded up so that a job is never early. Times before 1970 count as 1970.
fn millis_up(time: jiff::Timestamp) -> u64 {
    let rest = u64::from(time.subsec_nanosecond() % 1_000_000 > 0);
    u64::try_from(time.as_millisecond()).map_or(0, |ms| ms + rest)
}

#[cfg(test)]
mod tests;
