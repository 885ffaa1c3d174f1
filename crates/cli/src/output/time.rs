//! Renders times: in the local zone on a terminal, and relative to now, such as "in 9m 59s".

use std::io::{self, IsTerminal as _};

use jiff::tz::TimeZone;
use ringback_core::clock::Timestamp;

/// The zone in which times are printed.
#[derive(Clone, Debug)]
pub(crate) enum Times {
    /// As the API gives them.
    Utc,
    In(TimeZone),
}

impl Times {
    /// The zone of this machine (`TZ`, else `/etc/localtime`) if standard output is a terminal; otherwise, and with
    /// `utc`, UTC, so that scripts and files do not depend on the machine.
    pub(crate) fn of_stdout(utc: bool) -> Self {
        if utc || !io::stdout().is_terminal() {
            return Self::Utc;
        }
        TimeZone::try_system().map_or(Self::Utc, Self::In)
    }

    /// A time of the API in the zone, as RFC 3339 with milliseconds. Unchanged if it is not a time.
    pub(crate) fn show(&self, time: &str) -> String {
        let (Self::In(zone), Ok(at)) = (self, time.parse::<jiff::Timestamp>()) else {
            return time.to_owned();
        };
        let local = at.to_zoned(zone.clone());
        if local.offset().is_zero() {
            return time.to_owned();
        }
        local.strftime("%Y-%m-%dT%H:%M:%S%.3f%:z").to_string()
    }
}

/// `in 9m 59s`, `3s ago` or `now`, for a time of the API; empty when it is not a time.
pub(crate) fn relative(time: &str, now: Timestamp) -> String {
    let Ok(time) = time.parse::<jiff::Timestamp>() else { return String::new() };
    let now = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
    let ahead = time.as_millisecond().saturating_sub(now);
    let long = rough(ahead.unsigned_abs());
    match ahead {
        _ if ahead.unsigned_abs() < 1000 => "now".to_owned(),
        1.. => format!("in {long}"),
        _ => format!("{long} ago"),
    }
}

/// A duration in its largest unit and the next smaller one, if that is not 0. Below a second empty.
fn rough(ms: u64) -> String {
    let seconds = ms / 1000;
    let units = [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)];
    let first = units.iter().position(|(_, size)| seconds >= *size).unwrap_or(3);
    let mut left = seconds;
    let mut parts = Vec::new();
    for (unit, size) in units.iter().skip(first).take(2) {
        if left / size > 0 {
            parts.push(format!("{}{unit}", left / size));
        }
        left %= size;
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_in_a_zone_has_the_offset_of_that_day() {
        let berlin = Times::In(TimeZone::get("Europe/Berlin").unwrap());
        for (time, shown) in [
            ("2026-11-20T09:30:15.017Z", "2026-11-20T10:30:15.017+01:00"),
            ("2026-07-20T23:30:15.000Z", "2026-07-21T01:30:15.000+02:00"),
            ("tomorrow", "tomorrow"),
        ] {
            assert_eq!(berlin.show(time), shown);
            assert_eq!(Times::Utc.show(time), time);
        }
        assert_eq!(Times::In(TimeZone::UTC).show("2026-11-20T09:30:15.017Z"), "2026-11-20T09:30:15.017Z");
    }

    #[test]
    fn times_are_relative_to_now_in_two_units() {
        let now = Timestamp::from_millis(1_763_600_000_000);
        for (ahead, text) in [
            (0, "now"),
            (-999, "now"),
            (1_500, "in 1s"),
            (-61_000, "1m 1s ago"),
            (3_600_000, "in 1h"),
            (86_400_000 + 59_000, "in 1d"),
            (40 * 86_400_000 + 3_600_000, "in 40d 1h"),
        ] {
            let time = jiff::Timestamp::from_millisecond(1_763_600_000_000 + ahead).unwrap();
            assert_eq!(relative(&time.to_string(), now), text);
        }
        assert_eq!(relative("tomorrow", now), "");
    }
}
