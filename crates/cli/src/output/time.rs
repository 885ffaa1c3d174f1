//! Times relative to now, such as "in 9m 59s".

use ringback_core::clock::Timestamp;

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

/// The two largest units, seconds at least.
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
