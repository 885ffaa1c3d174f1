//! Tests of the text of cron expressions: what is accepted and when it fires first, and what is refused and why.

use proptest::prelude::*;

use super::{cron, time};
use crate::schedule::{Cron, CronError};
use crate::written_time::Zone;

fn parse(text: &str) -> Result<Cron, CronError> {
    Cron::parse(text, Zone::utc())
}

const NOW: &str = "2026-11-28T09:30:00Z";

#[test]
fn each_form_fires_at_the_times_that_it_means() {
    for (text, times) in [
        ("* * * * *", ["2026-11-28T09:31", "2026-11-28T09:32"]),
        ("0 8 * * MON-FRI", ["2026-11-30T08:00", "2026-12-01T08:00"]),
        ("0 8 * * mon,Wed", ["2026-11-30T08:00", "2026-12-02T08:00"]),
        ("  00\t08  * *  1-5 ", ["2026-11-30T08:00", "2026-12-01T08:00"]),
        ("0 8 * * *\r\n", ["2026-11-29T08:00", "2026-11-30T08:00"]),
        ("0,30 8-9 1 jan-MAR *", ["2027-01-01T08:00", "2027-01-01T08:30"]),
        ("0-30/10 9 * * *", ["2026-11-29T09:00", "2026-11-29T09:10"]),
        ("*/59 * * * *", ["2026-11-28T09:59", "2026-11-28T10:00"]),
        ("5,5 9-9 * * *", ["2026-11-29T09:05", "2026-11-30T09:05"]),
        // Sunday is 0 and 7.
        ("0 0 * * 7", ["2026-11-29T00:00", "2026-12-06T00:00"]),
        ("0 0 * * 0", ["2026-11-29T00:00", "2026-12-06T00:00"]),
        ("0 0 * * 5-7", ["2026-11-29T00:00", "2026-12-04T00:00"]),
        ("0 0 * * SUN-MON", ["2026-11-29T00:00", "2026-11-30T00:00"]),
        ("0 0 * * */6", ["2026-11-29T00:00", "2026-12-05T00:00"]),
        // Days of a month.
        ("0 18 L * *", ["2026-11-30T18:00", "2026-12-31T18:00"]),
        ("0 18 LW * *", ["2026-11-30T18:00", "2026-12-31T18:00"]),
        ("0 18 lw 1,2 *", ["2027-01-29T18:00", "2027-02-26T18:00"]),
        ("0 9 1W,15 * *", ["2026-12-01T09:00", "2026-12-15T09:00"]),
        ("0 9 1w 8 *", ["2027-08-02T09:00", "2028-08-01T09:00"]),
        ("0 0 29 2 *", ["2028-02-29T00:00", "2032-02-29T00:00"]),
        ("0 0 29 2 */7", ["2032-02-29T00:00", "2060-02-29T00:00"]),
        ("0 0 31 1-6 *", ["2027-01-31T00:00", "2027-03-31T00:00"]),
        // Weekdays of a month.
        ("0 9 * * TUE#2", ["2026-12-08T09:00", "2027-01-12T09:00"]),
        ("0 9 * * 2#5", ["2026-12-29T09:00", "2027-03-30T09:00"]),
        ("0 9 * * FRIL,7#1", ["2026-12-06T09:00", "2026-12-25T09:00"]),
        ("0 9 * * 5l", ["2026-12-25T09:00", "2027-01-29T09:00"]),
        ("0 9 * 2 MON#5", ["2044-02-29T09:00", "2072-02-29T09:00"]),
        // Both days: either is enough, unless one begins with *.
        ("0 12 13 * FRI", ["2026-12-04T12:00", "2026-12-11T12:00"]),
        ("0 12 13 * 1-7", ["2026-11-28T12:00", "2026-11-29T12:00"]),
        ("0 12 */2 * FRI", ["2026-12-11T12:00", "2026-12-25T12:00"]),
        ("0 12 1-31/2 * FRI", ["2026-11-29T12:00", "2026-12-01T12:00"]),
        ("0 12 13 * */3", ["2026-12-13T12:00", "2027-01-13T12:00"]),
        ("0 12 *,13 * FRI", ["2026-12-04T12:00", "2026-12-11T12:00"]),
        ("0 12 L * FRI", ["2026-11-30T12:00", "2026-12-04T12:00"]),
        ("0 12 L * */5", ["2027-01-31T12:00", "2027-02-28T12:00"]),
        // Names of whole expressions.
        ("@hourly", ["2026-11-28T10:00", "2026-11-28T11:00"]),
        ("@Daily", ["2026-11-29T00:00", "2026-11-30T00:00"]),
        ("@midnight", ["2026-11-29T00:00", "2026-11-30T00:00"]),
        ("@weekly", ["2026-11-29T00:00", "2026-12-06T00:00"]),
        ("@monthly", ["2026-12-01T00:00", "2027-01-01T00:00"]),
        ("@yearly", ["2027-01-01T00:00", "2028-01-01T00:00"]),
        ("@annually", ["2027-01-01T00:00", "2028-01-01T00:00"]),
    ] {
        let times = times.map(|text| time(&format!("{text}:00Z")));
        assert_eq!(cron(text, "UTC").upcoming(time(NOW), 2), times, "{text:?}");
    }
}

#[test]
fn a_value_is_read_in_its_own_field_alone_and_whole() {
    for (field, bad) in [
        ("minute", "60 -1 007 1.5 MON JAN TUE L W 5W ? +5 MON-TUE 5#1 x 0x5 5L ' \" \\"),
        ("hour", "24 SUN-TUE MON L 3W 3L 3#2 h"),
        ("day of the month", "0 32 FEB MON 15W99 W 0W 32W 1-5W 15W/2 L-0 L-3 L-LW WL 1L L1 LL 5#1 ? +1 -"),
        ("month", "0 13 MON JANUARY 1JAN JAN1 JANJAN JANFEB JA JANFEB-MAR L JAN#1 ?"),
        (
            "day of the week",
            "8 JAN MONDAY MO MON1 1MON MON#JAN MON#0 0#1# 0#6 #1 # 1# 1#01x MON-FRI#2 *#1 FRI#L L *L LFRI MONFRI ? +FRI",
        ),
    ] {
        for item in bad.split(' ') {
            refuse(field, item, &format!("{item:?} is not a"));
            refuse(field, &format!("1,{item}"), &format!("{item:?} is not a"));
        }
    }
}

/// Puts a text into one of the fields.
fn within(field: &str, text: &str) -> String {
    const FIELDS: [&str; 5] = ["minute", "hour", "day of the month", "month", "day of the week"];
    FIELDS.map(|name| if name == field { text } else { "*" }).join(" ")
}

fn refuse(field: &str, text: &str, why: &str) {
    let written = within(field, text);
    let error = parse(&written).unwrap_err().to_string();
    assert!(error.starts_with(why) && error.contains(field), "{written:?}: {error}");
}

#[test]
fn lists_ranges_and_steps_are_whole_and_in_order() {
    for field in ["minute", "hour", "day of the month", "month", "day of the week"] {
        for text in [",", "1,", ",1", "1,,2", ",,"] {
            refuse(field, text, &format!("the {field} {text:?} has an empty item"));
        }
        for text in ["2-1", "5-4/2"] {
            refuse(field, text, &format!("the range {text:?} of the {field} goes backwards"));
        }
        for text in
            ["*/0", "*/00", "*/61", "1-5/", "*/", "1-5/x", "*/-1", "*/TUE", "*/1/2", "*/1-2", "*/*", "*/100"]
        {
            refuse(field, text, &format!("the step of the {field} {text:?} is not a number from 1 to"));
        }
        for text in ["1-", "-1", "--", "-", "1--2", "1-2-3", "*-2", "1-*", "**", "*5", "5*", "1;2"] {
            refuse(field, text, &format!("{text:?} is not a"));
        }
        refuse(field, "5/2", &format!("the step of the {field} \"5/2\" does not follow * or a range"));
    }
    for text in ["SAT-SUN", "FRI-MON", "6-0"] {
        refuse("day of the week", text, &format!("the range {text:?} of the day of the week goes backwards"));
    }
    refuse("month", "NOV-FEB", "the range \"NOV-FEB\" of the month goes backwards");
}

#[test]
fn a_text_that_is_not_five_fields_of_ascii_says_what_to_write() {
    for (text, why) in [
        ("", "it has 0 fields, not 5"),
        ("* * * *", "it has 4 fields, not 5"),
        ("0 8 * * * 2026", "it has 6 fields, not 5: seconds, years and commands are not part of it"),
        ("0 0 8 * * * 2026", "it has 7 fields, not 5"),
        ("0 8 * * FEB 29#", "it has 6 fields"),
        ("@reboot", "\"@reboot\" is not one of the names, which are @hourly, @daily"),
        ("@", "\"@\" is not one of the names"),
        ("@daily 5", "\"@daily 5\" is not one of the names"),
        ("@every 5m", "a period is not a cron expression: give it in the field every"),
        ("CRON_TZ=Europe/Berlin 0 8 * * *", "it begins with a time zone: give that in the field time_zone"),
        ("tz=UTC * * * * *", "it begins with a time zone"),
        ("0 8 * * fr\u{131}", "it has a character that is not printable ASCII: '\u{131}'"),
        ("\u{661} 8 * * *", "it has a character that is not printable ASCII"),
        ("0\u{a0}8 * * *", "it has a character that is not printable ASCII"),
        ("\u{2003}0 8 * * *", "it has a character that is not printable ASCII"),
        ("0 8\n* * *", "it has a character that is not printable ASCII: '\\n'"),
        ("0 8 \0 * *", "it has a character that is not printable ASCII"),
        (&"*".repeat(300), "it is longer than 256 bytes"),
    ] {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.starts_with(why), "{text:?}: {error}");
    }
}

#[test]
fn what_no_date_matches_has_no_next_time() {
    for text in [
        "0 0 31 2 *",
        "0 0 30 2 *",
        "0 0 30W 2 *",
        "0 0 31 4,6,9,11 *",
        "0 0 31W 6 *",
        "* * */31 2 MON#2",
        "0 0 */31 * TUE#5",
        "*/5 * 30,31 2 *",
        // The nearest workday is never a Sunday.
        "0 0 29W 2 */7",
        "0 0 LW * */7",
    ] {
        assert_eq!(cron(text, "Europe/Berlin").next_after(time(NOW)), None, "{text}");
    }
}

#[test]
fn texts_that_mean_the_same_are_known_to() {
    for (one, other, is_same) in [
        ("0 8 * * MON-FRI", "00  8 * * 1,2,3-5", true),
        ("@daily", "0 0 * * *", true),
        ("* * * * *", "*/1 * 1-31 JAN-dec *", true),
        ("0 0 * * 0", "0 0 * * SUN", true),
        // When clocks change, the first goes on and the other does not.
        ("0 * * * *", "0 0-23 * * *", false),
        ("0 8 1 * MON", "0 8 */31 * MON", false),
        ("0 8 * * *", "0 9 * * *", false),
    ] {
        assert_eq!(parse(one).unwrap().means(&parse(other).unwrap()), is_same, "{one} {other}");
    }
}

proptest! {
    #[test]
    fn any_text_is_refused_or_fires_after_the_time_that_is_asked_for(
        fields in proptest::collection::vec(
            "(\\*|[0-9]{1,2}(-[0-9]{1,2})?|[0-9]{1,2}W|L|LW|[A-Z0-9]{1,3}(#[0-9]|L)|[ -~]{0,3})(/[0-9]{1,2})?(,[0-9]{1,2})?",
            5,
        ),
        from in 0..4_000_000_000_000_u64,
    ) {
        if let Ok(cron) = parse(&fields.join(" ")) {
            let from = crate::clock::Timestamp::from_millis(from);
            let next = cron.next_after(from);
            prop_assert!(next.is_none_or(|next| next > from && next.as_millis().is_multiple_of(60_000)));
            let just_before = next.map(|next| crate::clock::Timestamp::from_millis(next.as_millis() - 1));
            prop_assert_eq!(just_before.and_then(|time| cron.next_after(time)), next);
        }
    }
}
