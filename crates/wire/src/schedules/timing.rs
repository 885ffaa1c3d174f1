//! The fields that say when a schedule fires: `cron`, or `every` and `anchor`, as its rule. Refuses times before 1970.

use ringback_core::clock::Timestamp;
use ringback_core::schedule::{Cron, MAX_EVERY, MIN_EVERY, Rule, Schedule};
use ringback_core::written_time::Zone;

use crate::field_parsers::due::local_time;
use crate::field_parsers::object::{Fields, Mistakes, read, shown};
use crate::field_parsers::values::duration_within;

/// What the rule needs besides its own fields.
pub(super) struct Timing<'a> {
    pub(super) zone: Zone,
    pub(super) from: Option<Timestamp>,
    pub(super) now: Timestamp,
    pub(super) stored: Option<&'a Schedule>,
}

/// The rule of a schedule; `None` if its fields are missing or wrong, which adds a mistake.
pub(super) fn rule(fields: &Fields<'_>, timing: Timing<'_>, mistakes: &mut Mistakes) -> Option<Rule> {
    match (fields.get("cron"), fields.get("every")) {
        (Some(_), Some(_)) => mistakes.add("every", "given together with cron", "one of cron and every"),
        (None, None) => mistakes.add("cron", "missing, and every too", "one of cron and every"),
        (Some(_), None) => return cron(fields, timing.zone, mistakes),
        (None, Some(_)) => return every(fields, &timing, mistakes),
    }
    None
}

/// Adds a mistake for a time before 1970: such times cannot be told apart.
pub(super) fn after_1970(fields: &Fields<'_>, name: &str, time: Option<Timestamp>, mistakes: &mut Mistakes) {
    let year = || read::<String>(fields.get(name)?)?.get(..4)?.parse::<u16>().ok();
    if time == Some(Timestamp::default()) && year().is_none_or(|year| year < 1970) {
        mistakes.add(name, "before 1970", "a time after 1970");
    }
}

fn cron(fields: &Fields<'_>, zone: Zone, mistakes: &mut Mistakes) -> Option<Rule> {
    if fields.get("anchor").is_some() {
        mistakes.add("anchor", "given for a cron expression", "only together with every");
    }
    let raw = fields.get("cron")?;
    let Some(text) = read::<String>(raw) else {
        mistakes.add("cron", format_args!("{} is not a text", shown(raw)), Cron::ALLOWED);
        return None;
    };
    match Cron::parse(&text, zone) {
        Ok(cron) => Some(Rule::Cron(cron.into())),
        Err(error) => {
            mistakes.add("cron", format_args!("{} cannot be read: {error}", shown(raw)), Cron::ALLOWED);
            None
        }
    }
}

fn every(fields: &Fields<'_>, timing: &Timing<'_>, mistakes: &mut Mistakes) -> Option<Rule> {
    let range = MIN_EVERY..=MAX_EVERY;
    let period = duration_within(fields, "every", "is not a period", range, "1 s to 366 days", mistakes);
    let zone = fields.get("time_zone").map(|_| &timing.zone);
    let given = local_time(fields, "anchor", zone, mistakes);
    after_1970(fields, "anchor", given, mistakes);
    let period = period?;
    // A schedule that is put again goes on as before.
    let stored = match timing.stored.map(|stored| (&stored.rule, stored.from)) {
        Some((Rule::Every { period: stored, anchor }, from)) if *stored == period && from == timing.from => {
            Some(*anchor)
        }
        _ => None,
    };
    // Whole seconds make short ids of jobs.
    let this_second = Timestamp::from_millis(timing.now.as_millis() / 1000 * 1000);
    let anchor = given.or(stored).or(timing.from).unwrap_or(this_second);
    Some(Rule::Every { period, anchor })
}
