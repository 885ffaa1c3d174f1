//! Tests of times at the edges: where clocks change, early and far years, offsets that do not agree.

use super::*;

/// The point in time that a text means, in RFC 3339, or what is wrong with it.
fn read(text: &str, zone: Option<&str>) -> Result<String, TimeError> {
    let time = match zone {
        None => parse_time(text),
        Some(name) => WrittenTime::parse(text)?.resolve(Some(&Zone::named(name).unwrap())),
    };
    Ok(time?.to_string())
}

/// Checks that each text, with the zone beside it unless that is empty, is a point in time of UTC.
fn is(rows: &[(&str, &str, &str)]) {
    for (text, zone, expected) in rows {
        assert_eq!(read(text, beside(zone)), Ok(format!("{expected}Z")), "{text} {zone}");
    }
}

/// Checks what is wrong with each text, with the zone beside it unless that is empty.
fn is_wrong(rows: &[(&str, &str, TimeError)]) {
    for (text, zone, expected) in rows {
        assert_eq!(read(text, beside(zone)).as_ref(), Err(expected), "{text} {zone}");
    }
}

fn beside<'a>(zone: &&'a str) -> Option<&'a str> {
    Some(*zone).filter(|zone| !zone.is_empty())
}

#[test]
fn times_by_rfc_3339_are_points_in_time() {
    is(&[
        ("2026-11-20T09:30:00Z", "", "2026-11-20T09:30:00.000"),
        ("2026-11-20t09:30:00z", "", "2026-11-20T09:30:00.000"),
        ("2026-11-20 09:30:00Z", "", "2026-11-20T09:30:00.000"),
        ("2026-11-20T10:30:00+01:00", "", "2026-11-20T09:30:00.000"),
        ("2026-11-20T04:00:00-05:30", "", "2026-11-20T09:30:00.000"),
        ("2026-11-20T09:30:00-00:00", "", "2026-11-20T09:30:00.000"),
        ("2026-11-20T09:30:00.0001Z", "", "2026-11-20T09:30:00.001"),
        ("2026-11-20T09:30:00.999999999Z", "", "2026-11-20T09:30:01.000"),
    ]);
    is_wrong(
        &[
            "",
            "tomorrow",
            "2026-11-20",
            "2026-13-20T09:30:00Z",
            "2026-02-29T09:30:00Z",
            "1763600000",
            "2026-11-20T24:00:00Z",
            "2026-11-20T09:61:00Z",
            "2026-11-20T09:30:00Zx",
            "2026-11-20T09:30:00+",
        ]
        .map(|bad| (bad, "", TimeError::Unreadable)),
    );
}

#[test]
fn a_local_time_is_that_of_its_zone() {
    is(&[
        ("2026-11-23T09:00", "Europe/Berlin", "2026-11-23T08:00:00.000"),
        ("2027-07-23T09:00:00", "europe/berlin", "2027-07-23T07:00:00.000"),
        ("2027-07-23T09:00:00.5", "America/New_York", "2027-07-23T13:00:00.500"),
        // The other half of the year on the other half of the globe.
        ("2027-01-23T09:00", "Australia/Sydney", "2027-01-22T22:00:00.000"),
        ("2027-07-23T09:00", "Australia/Sydney", "2027-07-22T23:00:00.000"),
        // Offsets that are not whole hours, and beyond half a day.
        ("2027-01-23T09:00", "Asia/Kathmandu", "2027-01-23T03:15:00.000"),
        ("2027-01-23T09:00", "Asia/Calcutta", "2027-01-23T03:30:00.000"),
        ("2027-01-23T09:00", "Asia/Kolkata", "2027-01-23T03:30:00.000"),
        ("2027-01-23T09:00", "Pacific/Kiritimati", "2027-01-22T19:00:00.000"),
        ("2027-01-23T09:00", "Pacific/Chatham", "2027-01-22T19:15:00.000"),
        // A POSIX sign: five hours behind.
        ("2027-01-23T09:00", "Etc/GMT+5", "2027-01-23T14:00:00.000"),
        ("2027-01-23T09:00", "UTC", "2027-01-23T09:00:00.000"),
        ("2027-01-23T09:00[Europe/Berlin]", "", "2027-01-23T08:00:00.000"),
        ("2027-01-23T09:00[+01:00]", "", "2027-01-23T08:00:00.000"),
    ]);
    is_wrong(&[
        ("2026-11-23T09:00", "", TimeError::Local),
        ("2026-11-23T09:00:00[u-ca=hebrew]", "", TimeError::Local),
    ]);
    assert!(WrittenTime::parse("2026-11-23T09:00").unwrap().is_local());
    assert!(!WrittenTime::parse("2026-11-23T09:00[Europe/Berlin]").unwrap().is_local());
}

#[test]
fn a_time_that_clocks_skip_is_later_by_as_much_as_they_skip() {
    is(&[
        ("2027-03-28T01:59:59.999", "Europe/Berlin", "2027-03-28T00:59:59.999"),
        ("2027-03-28T02:00", "Europe/Berlin", "2027-03-28T01:00:00.000"),
        ("2027-03-28T02:30", "Europe/Berlin", "2027-03-28T01:30:00.000"),
        ("2027-03-28T03:00", "Europe/Berlin", "2027-03-28T01:00:00.000"),
        ("2027-03-14T02:30", "America/New_York", "2027-03-14T07:30:00.000"),
        ("2026-10-04T02:30", "Australia/Sydney", "2026-10-03T16:30:00.000"),
        // Half an hour.
        ("2026-10-04T02:15", "Australia/Lord_Howe", "2026-10-03T15:45:00.000"),
        // At midnight.
        ("2027-09-05T00:30", "America/Santiago", "2027-09-05T04:30:00.000"),
        // Samoa skipped the whole 30th of December.
        ("2011-12-30T12:00", "Pacific/Apia", "2011-12-30T22:00:00.000"),
        ("2027-03-28T02:30[Europe/Berlin]", "", "2027-03-28T01:30:00.000"),
    ]);
}

#[test]
fn a_time_that_comes_twice_is_the_earlier_one_unless_its_offset_says_which() {
    is(&[
        ("2026-10-25T01:59:59", "Europe/Berlin", "2026-10-24T23:59:59.000"),
        ("2026-10-25T02:00", "Europe/Berlin", "2026-10-25T00:00:00.000"),
        ("2026-10-25T02:59:59", "Europe/Berlin", "2026-10-25T00:59:59.000"),
        ("2026-10-25T03:00", "Europe/Berlin", "2026-10-25T02:00:00.000"),
        ("2026-10-25T02:30:00+02:00", "Europe/Berlin", "2026-10-25T00:30:00.000"),
        ("2026-10-25T02:30:00+01:00", "Europe/Berlin", "2026-10-25T01:30:00.000"),
        ("2026-10-25T02:30:00+01:00[Europe/Berlin]", "", "2026-10-25T01:30:00.000"),
        ("2026-11-01T01:30", "America/New_York", "2026-11-01T05:30:00.000"),
        ("2027-04-04T02:30", "Australia/Sydney", "2027-04-03T15:30:00.000"),
        ("2027-04-04T01:45", "Australia/Lord_Howe", "2027-04-03T14:45:00.000"),
        ("2027-04-03T23:30", "America/Santiago", "2027-04-04T02:30:00.000"),
    ]);
}

#[test]
fn rules_of_earlier_and_later_years_are_those_of_then() {
    is(&[
        // Berlin had no summer time in 1970, and double summer time in 1945.
        ("1970-07-01T12:00", "Europe/Berlin", "1970-07-01T11:00:00.000"),
        ("1975-01-01T12:00", "Africa/Monrovia", "1975-01-01T12:00:00.000"),
        // An offset with seconds, which RFC 3339 cannot write.
        ("1971-06-01T00:00:00-00:45", "Africa/Monrovia", "1971-06-01T00:44:30.000"),
        ("1971-06-01T00:00:00-00:44:30", "Africa/Monrovia", "1971-06-01T00:44:30.000"),
        // Moscow was at +04:00 from 2011 to 2014.
        ("2012-01-01T12:00:00+04:00", "Europe/Moscow", "2012-01-01T08:00:00.000"),
        ("2027-01-01T12:00:00+03:00", "Europe/Moscow", "2027-01-01T09:00:00.000"),
        // The last rule that is known holds on.
        ("2099-07-01T12:00", "Europe/Berlin", "2099-07-01T10:00:00.000"),
        ("9999-07-01T12:00", "Europe/Berlin", "9999-07-01T10:00:00.000"),
        // Before 1970 is 1970.
        ("1945-05-24T12:00", "Europe/Berlin", "1970-01-01T00:00:00.000"),
        ("0000-01-01T00:00:00Z", "", "1970-01-01T00:00:00.000"),
        ("-009999-06-01T00:00:00Z", "", "1970-01-01T00:00:00.000"),
    ]);
    is_wrong(&[
        ("9999-12-31T23:59:59Z", "", TimeError::OutOfRange),
        ("9999-12-31T23:59:59", "Europe/Berlin", TimeError::OutOfRange),
        ("+010000-01-01T00:00:00Z", "", TimeError::Unreadable),
    ]);
}

#[test]
fn a_leap_second_is_the_second_before_it() {
    is(&[
        ("2016-12-31T23:59:60Z", "", "2016-12-31T23:59:59.000"),
        ("2017-01-01T00:59:60.25", "Europe/Berlin", "2016-12-31T23:59:59.250"),
    ]);
    is_wrong(&[("2016-12-31T23:59:61Z", "", TimeError::Unreadable)]);
}

#[test]
fn an_offset_and_its_zone_must_agree() {
    is(&[
        ("2027-07-23T09:00:00+02:00[Europe/Berlin]", "", "2027-07-23T07:00:00.000"),
        ("2027-07-23T09:00:00+02:00[!Europe/Berlin]", "", "2027-07-23T07:00:00.000"),
        ("2027-07-23T09:00:00+02:00[europe/berlin][u-ca=hebrew]", "", "2027-07-23T07:00:00.000"),
        ("2027-07-23T09:00:00+02:00", "Europe/Berlin", "2027-07-23T07:00:00.000"),
        ("2027-07-23T09:00:00+02:00[+02:00]", "", "2027-07-23T07:00:00.000"),
        ("2027-07-23T09:00:00+02:00[Europe/Berlin]", "EUROPE/BERLIN", "2027-07-23T07:00:00.000"),
        // Z says nothing about the offset of the zone.
        ("2027-07-23T07:00:00Z[Europe/Berlin]", "", "2027-07-23T07:00:00.000"),
        ("2027-07-23T07:00:00-00:00[Europe/Berlin]", "", "2027-07-23T07:00:00.000"),
        ("2027-07-23T07:00:00Z", "Europe/Berlin", "2027-07-23T07:00:00.000"),
        ("2027-03-28T02:30:00Z[Europe/Berlin]", "", "2027-03-28T02:30:00.000"),
        ("2027-01-01T00:00:00+00:00[Europe/London]", "", "2027-01-01T00:00:00.000"),
    ]);
    for (text, zone, why) in [
        ("2027-07-23T09:00:00+01:00[Europe/Berlin]", "", "Europe/Berlin is at +02:00 then, not at +01:00"),
        ("2027-07-23T09:00:00+01:00", "Europe/Berlin", "Europe/Berlin is at +02:00 then, not at +01:00"),
        (
            "2026-10-25T02:30:00+03:00[Europe/Berlin]",
            "",
            "Europe/Berlin is at +02:00 or +01:00 then, not at +03:00",
        ),
        // +00:00 is an offset, unlike Z.
        ("2027-07-23T07:00:00+00:00[Europe/Berlin]", "", "Europe/Berlin is at +02:00 then, not at +00:00"),
        ("2027-03-28T02:30:00+01:00[Europe/Berlin]", "", SKIPPED),
        ("2027-03-28T02:30:00+02:00[Europe/Berlin]", "", SKIPPED),
        (
            "1971-06-01T00:00:00-00:44[Africa/Monrovia]",
            "",
            "Africa/Monrovia is at -00:44:30 then, not at -00:44",
        ),
        ("2027-07-23T09:00:00+02:00[+01:00]", "", "+01:00 is at +01:00 then, not at +02:00"),
    ] {
        assert_eq!(read(text, beside(&zone)).unwrap_err().to_string(), why, "{text} {zone}");
    }
}

const SKIPPED: &str = "there is no such time in Europe/Berlin, where clocks skip it";

#[test]
fn an_annotation_and_the_zone_beside_it_must_be_the_same() {
    is_wrong(
        &[
            "2027-07-23T09:00:00+02:00[Europe/Paris]",
            "2027-07-23T09:00[Europe/Paris]",
            "2027-07-23T09:00:00Z[Europe/Paris]",
            "2027-07-23T09:00:00+02:00[+02:00]",
        ]
        .map(|text| (text, "Europe/Berlin", TimeError::OtherZone("Europe/Berlin".to_owned()))),
    );
}

#[test]
fn what_is_unknown_is_refused_whether_it_is_critical_or_not() {
    is_wrong(&[
        ("2027-01-01T00:00:00Z[!Mars/Phobos]", "", TimeError::UnknownZone("Mars/Phobos".to_owned())),
        ("2027-01-01T00:00:00Z[Mars/Phobos]", "", TimeError::UnknownZone("Mars/Phobos".to_owned())),
        ("2027-01-01T00:00:00Z[!u-ca=hebrew]", "", TimeError::Annotation),
        ("2027-01-01T00:00:00Z[Europe/Berlin][Europe/Berlin]", "", TimeError::Annotation),
        ("2027-01-01T00:00:00Z[", "", TimeError::Annotation),
    ]);
    is(&[("2027-01-01T00:00:00Z[u-ca=hebrew]", "", "2027-01-01T00:00:00.000")]);
}

#[test]
fn the_zones_are_those_of_the_binary() {
    // The database of the system would be looked for here.
    assert!(jiff::tz::db().get("Europe/Berlin").is_ok());
    assert!(format!("{:?}", jiff::tz::db()).contains("Bundled"), "{:?}", jiff::tz::db());
}
