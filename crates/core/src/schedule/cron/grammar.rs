//! The grammar of cron expressions: five fields, each a list of values, ranges and steps; and names such as `@daily`.

use super::dates::{Dates, Days, Match, Weekdays};
use super::times::Times;

/// The longest expression, in bytes.
const MAX_LENGTH: usize = 256;
/// The names that stand for an expression.
const NICKNAMES: [(&str, &str); 7] = [
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
];
const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

const MINUTE: Field =
    Field { name: "minute", one: "a minute", form: "0 to 59", least: 0, most: 59, names: &[] };
const HOUR: Field = Field { name: "hour", one: "an hour", form: "0 to 23", least: 0, most: 23, names: &[] };
const DAY: Field = Field {
    name: "day of the month",
    one: "a day of the month",
    form: "1 to 31, L, LW, or a day with W behind",
    least: 1,
    most: 31,
    names: &[],
};
const MONTH: Field = Field {
    name: "month",
    one: "a month",
    form: "1 to 12 or JAN to DEC",
    least: 1,
    most: 12,
    names: &MONTHS,
};
const WEEKDAY: Field = Field {
    name: "day of the week",
    one: "a day of the week",
    form: "0 to 7 or SUN to SAT, also one with # and 1 to 5 or with L behind",
    least: 0,
    most: 7,
    names: &WEEKDAYS,
};

/// Why a text is not a cron expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CronError(String);

/// A parsed expression.
pub(super) struct Parsed {
    pub(super) times: Times,
    /// Whether its hours begin with `*`.
    pub(super) is_any_hour: bool,
}

/// Parses an expression or its name: at most 256 bytes of printable ASCII and tabs. The error says what is wrong.
pub(super) fn parse(text: &str) -> Result<Parsed, CronError> {
    if text.len() > MAX_LENGTH {
        return Err(CronError(format!("it is longer than {MAX_LENGTH} bytes")));
    }
    if let Some(other) = text.chars().find(|c| !matches!(c, ' '..='~' | '\t')) {
        return Err(CronError(format!("it has a character that is not printable ASCII: {other:?}")));
    }
    let written = expanded(text)?;
    let fields: Vec<_> = written.split([' ', '\t']).filter(|field| !field.is_empty()).collect();
    let [minute, hour, day, month, weekday] = fields[..] else {
        return Err(wrong_count(fields.len()));
    };
    let begin_with_star = |fields: &[&str]| fields.iter().any(|field| field.starts_with('*'));
    let (minutes, hours) = (MINUTE.set(minute)?, HOUR.set(hour)?);
    let dates = Dates {
        days: days(day)?,
        months: narrow(MONTH.set(month)?),
        weekdays: weekdays(weekday)?,
        // As Vixie cron has it, which is the cron of Linux.
        needs: if begin_with_star(&[day, weekday]) { Match::Both } else { Match::Either },
    };
    let times = Times { minutes, hours: narrow(hours), dates };
    Ok(Parsed { times, is_any_hour: begin_with_star(&[hour]) })
}

/// Returns the expression that a name such as `@daily` stands for, and a text without `@` unchanged. Refuses unknown
/// names, `@every`, and a time zone at the start.
fn expanded(text: &str) -> Result<&str, CronError> {
    let begins_with = |start: &str| text.get(..start.len()).is_some_and(|s| s.eq_ignore_ascii_case(start));
    if begins_with("CRON_TZ=") || begins_with("TZ=") {
        let detail = "it begins with a time zone: give that in the field time_zone, such as \"time_zone\":\"Europe/Berlin\"";
        return Err(CronError(detail.to_owned()));
    }
    if !text.starts_with('@') {
        return Ok(text);
    }
    if begins_with("@every") {
        let detail = "a period is not a cron expression: give it in the field every in place of cron, such as \"every\":\"90m\"";
        return Err(CronError(detail.to_owned()));
    }
    let known = NICKNAMES.into_iter().find(|(name, _)| text.eq_ignore_ascii_case(name));
    known.map(|(_, fields)| fields).ok_or_else(|| {
        let names = NICKNAMES.map(|(name, _)| name).join(", ");
        CronError(format!("{text:?} is not one of the names, which are {names}"))
    })
}

fn wrong_count(count: usize) -> CronError {
    let more = if count > 5 { ": seconds, years and commands are not part of it" } else { "" };
    CronError(format!("it has {count} fields, not 5{more}"))
}

/// One of the five fields.
struct Field {
    name: &'static str,
    /// One of its values, with an article.
    one: &'static str,
    /// What a value looks like.
    form: &'static str,
    least: u8,
    most: u8,
    /// The names of its values, from the least on.
    names: &'static [&'static str],
}

impl Field {
    fn items<'a>(&self, field: &'a str) -> Result<impl Iterator<Item = &'a str> + use<'a>, CronError> {
        if field.split(',').any(str::is_empty) {
            return Err(CronError(format!("the {} {field:?} has an empty item in its list", self.name)));
        }
        Ok(field.split(','))
    }

    /// Parses a list of numbers, names, ranges and steps. Returns a bit for each value.
    fn set(&self, field: &str) -> Result<u64, CronError> {
        self.items(field)?.try_fold(0, |set, item| Ok(set | self.item(item)?))
    }

    fn item(&self, item: &str) -> Result<u64, CronError> {
        let (span, step) = match item.split_once('/') {
            Some((span, step)) => (span, Some(self.step(item, step)?)),
            None => (item, None),
        };
        let (first, last) = match (span, span.split_once('-')) {
            ("*", _) => (self.least, self.most),
            (_, Some((first, last))) => self.range(item, first, last)?,
            (_, None) => {
                let value = self.value(span).ok_or_else(|| self.not_one(item))?;
                if step.is_some() {
                    return Err(self.without_range(item, value));
                }
                (value, value)
            }
        };
        let values = (first..=last).step_by(step.unwrap_or(1));
        Ok(values.fold(0, |set, value| set | 1 << value))
    }

    fn range(&self, item: &str, first: &str, last: &str) -> Result<(u8, u8), CronError> {
        let (Some(first), Some(last)) = (self.value(first), self.value(last)) else {
            return Err(self.not_one(item));
        };
        if first > last {
            let detail = format!(
                "the range {item:?} of the {} goes backwards: write two, such as 22-23,0-2 for the hours from 22 to 2",
                self.name
            );
            return Err(CronError(detail));
        }
        Ok((first, last))
    }

    fn step(&self, item: &str, step: &str) -> Result<usize, CronError> {
        let fits = |step: &u8| (1..=self.most).contains(step);
        number(step).filter(fits).map(usize::from).ok_or_else(|| {
            CronError(format!(
                "the step of the {} {item:?} is not a number from 1 to {}",
                self.name, self.most
            ))
        })
    }

    /// Reads a number, or a name in upper or lower case; `None` if it is not a value of this field.
    fn value(&self, text: &str) -> Option<u8> {
        let named = || {
            let place = self.names.iter().position(|name| text.eq_ignore_ascii_case(name))?;
            u8::try_from(place).ok().map(|place| self.least + place)
        };
        let fits = |value: &u8| (self.least..=self.most).contains(value);
        number(text).filter(fits).or_else(named)
    }

    fn not_one(&self, item: &str) -> CronError {
        let hint = match item {
            "?" => ": write * in its place",
            _ if item.starts_with('+') => ": a + is not known",
            _ => ", or a list, a range or a step of these",
        };
        CronError(format!("{item:?} is not {}, which is {}{hint}", self.one, self.form))
    }

    fn without_range(&self, item: &str, value: u8) -> CronError {
        let step = item.split_once('/').map_or("", |(_, step)| step);
        let detail = format!(
            "the step of the {} {item:?} does not follow * or a range: write {value}-{}/{step}",
            self.name, self.most
        );
        CronError(detail)
    }
}

/// A number of one or two digits; `None` for another text.
fn number(text: &str) -> Option<u8> {
    let is_number = (1..=2).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

/// Parses the days of the month: what [`Field::set`] reads, and `L`, `LW` and days with `W`.
fn days(field: &str) -> Result<Days, CronError> {
    let mut days = Days::default();
    for item in DAY.items(field)? {
        let (start, end) = item.split_at_checked(item.len() - 1).unwrap_or((item, ""));
        match end {
            "W" | "w" if start.eq_ignore_ascii_case("L") => days.has_last_workday = true,
            "W" | "w" => days.nearest |= 1 << DAY.value(start).ok_or_else(|| DAY.not_one(item))?,
            "L" | "l" if start.is_empty() => days.has_last = true,
            _ => days.numbers |= narrow::<u32>(DAY.item(item)?),
        }
    }
    Ok(days)
}

/// Parses the days of the week: what [`Field::set`] reads, and days with `L`, or with `#` and 1 to 5. 7 is Sunday too.
fn weekdays(field: &str) -> Result<Weekdays, CronError> {
    let mut weekdays = Weekdays::default();
    for item in WEEKDAY.items(field)? {
        let bit =
            |day: &str| WEEKDAY.value(day).map(|day| 1 << (day % 7)).ok_or_else(|| WEEKDAY.not_one(item));
        if let Some((day, nth)) = item.split_once('#') {
            let day = bit(day)?;
            let nth = number(nth).and_then(|nth| weekdays.nth.get_mut(usize::from(nth).checked_sub(1)?));
            *nth.ok_or_else(|| WEEKDAY.not_one(item))? |= day;
        } else if let Some(day) = item.strip_suffix(['L', 'l']) {
            weekdays.last |= bit(day)?;
        } else {
            let set = WEEKDAY.item(item)?;
            // 7 is Sunday too.
            weekdays.all |= narrow::<u8>((set | set >> 7) & 0x7f);
        }
    }
    Ok(weekdays)
}

/// A set in as many bits as the values of its field need.
fn narrow<T: TryFrom<u64>>(set: u64) -> T {
    T::try_from(set).ok().expect("the values of the field fit")
}
