//! Time zones: by their names in the IANA database of the binary, never in that of the system, or of a fixed offset.

use std::fmt;

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousTimestamp, Offset, TimeZone, TimeZoneDatabase};

use super::{TimeError, shown};
use crate::limits::name_start;

/// A time zone of the IANA database, or one of a fixed offset.
#[derive(Clone, Debug, PartialEq)]
pub struct Zone(TimeZone);

impl Zone {
    /// The form of a time zone, for error messages.
    pub const ALLOWED: &'static str =
        "a name of the IANA time zone database, such as Europe/Berlin, America/New_York or UTC";

    /// The zone of this name, in upper or lower case.
    ///
    /// # Errors
    /// If the database has no such zone.
    pub fn named(name: &str) -> Result<Self, TimeError> {
        // Both mean that the zone is not known.
        let is_none = ["Etc/Unknown", "Factory"].iter().any(|none| name.eq_ignore_ascii_case(none));
        let found = if is_none { None } else { TimeZoneDatabase::bundled().get(name).ok() };
        found.map(Self).ok_or_else(|| TimeError::UnknownZone(name_start(name)))
    }

    /// UTC.
    pub fn utc() -> Self {
        Self(TimeZone::UTC)
    }

    pub(super) const fn fixed(offset: Offset) -> Self {
        Self(TimeZone::fixed(offset))
    }

    pub(crate) const fn time_zone(&self) -> &TimeZone {
        &self.0
    }

    /// The offset of a local time; two of them where it occurs twice, and a gap where clocks skip it.
    pub(super) fn offsets(&self, local: DateTime) -> AmbiguousTimestamp {
        self.0.to_ambiguous_timestamp(local)
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.iana_name(), self.0.to_fixed_offset()) {
            (Some(name), _) => f.write_str(name),
            (None, Ok(offset)) => f.write_str(&shown(offset)),
            (None, Err(_)) => f.write_str("that zone"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_found_by_their_names_in_any_case() {
        for (name, shown) in [
            ("Europe/Berlin", "Europe/Berlin"),
            ("europe/BERLIN", "Europe/Berlin"),
            ("Asia/Calcutta", "Asia/Calcutta"),
            ("utc", "UTC"),
            ("Etc/UTC", "Etc/UTC"),
            ("Etc/GMT+5", "Etc/GMT+5"),
            ("EST", "EST"),
        ] {
            assert_eq!(Zone::named(name).map(|zone| zone.to_string()), Ok(shown.to_owned()));
        }
    }

    #[test]
    fn other_names_are_not_zones() {
        let long = "x".repeat(100_000);
        for name in ["", "Mars/Phobos", "Berlin", "CEST", "+01:00", "Etc/Unknown", "factory", "Z", &long] {
            let TimeError::UnknownZone(shown) = Zone::named(name).unwrap_err() else { panic!("{name}") };
            assert!(name.starts_with(&shown) && shown.len() <= 64);
        }
    }
}
