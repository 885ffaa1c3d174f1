//! Schedules: parsing the request to put one, with its job and the rules that concern several fields. The fields are
//! declared in `request`, the answers are in `answer`.

mod answer;
mod request;
mod timing;

use ringback_core::clock::Timestamp;
use ringback_core::job::{Expires, MAX_AHEAD, Tenant};
use ringback_core::schedule::{
    MAX_SCHEDULED_BODY, Missed, Overlap, Rule, Schedule, ScheduleId, ScheduledJob,
};
use ringback_core::token::Token;
use ringback_core::topic_policy::Policies;
use ringback_core::written_time::Zone;

pub use self::answer::{
    FiringDetails, NextFiringsResponse, ScheduleFields, ScheduleLine, ScheduleResponse, ScheduledJobDetails,
    SchedulesResponse,
};
use self::request::JOB;
pub use self::request::{ScheduleRequest, ScheduledJobRequest};
use self::timing::{Timing, after_1970, rule};
use super::declare::Request as _;
use super::field_parsers::due::local_time;
use super::field_parsers::object::{Fields, Mistakes, open};
use super::field_parsers::values::object;
use super::problem::Problem;
use super::submit::{self, Defaults};

/// The most times of `next`.
pub const MAX_UPCOMING: usize = 100;

/// A parsed request to put a schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct NewSchedule {
    pub schedule: Schedule,
    /// Whether it is paused, if the request says it.
    pub paused: Option<bool>,
}

/// What a schedule needs besides its own fields.
#[derive(Clone, Copy)]
pub struct ScheduleDefaults<'a> {
    pub now: Timestamp,
    /// Its id.
    pub id: &'a ScheduleId,
    /// Whose topics the caller names.
    pub tenant: Option<&'a Tenant>,
    /// The schedule that has this id, if there is one.
    pub stored: Option<&'a Schedule>,
}

/// Parses the request to put a schedule. `policies` is `None` while they are not loaded yet.
///
/// # Errors
/// As for a submit. 422 also for a schedule that never fires, unless it has the times of the stored one.
pub fn parse_schedule(
    json: &[u8],
    defaults: ScheduleDefaults<'_>,
    policies: Option<&Policies>,
) -> Result<NewSchedule, Problem> {
    let fields = open(json)?;
    let mut mistakes = Mistakes::default();
    fields.check_names("", ScheduleRequest::NAMES, &mut mistakes);
    if !fields.fit(&["job"], &mut mistakes) {
        return Err(mistakes.into_problem());
    }
    let job = job(&fields, &defaults, policies, &mut mistakes)?;
    let ScheduleRequest { time_zone: zone, missed, catchup, overlap, jitter, paused, .. } =
        ScheduleRequest::values(&fields, &mut mistakes);
    let from = local_time(&fields, "from", zone.as_ref(), &mut mistakes);
    let until = local_time(&fields, "until", zone.as_ref(), &mut mistakes);
    after_1970(&fields, "from", from, &mut mistakes);
    if from.is_some_and(|from| from > defaults.now.plus(MAX_AHEAD)) {
        mistakes.add("from", "too far ahead", "at most 10 years from now");
    }
    let timing =
        Timing { zone: zone.unwrap_or_else(Zone::utc), from, now: defaults.now, stored: defaults.stored };
    let rule = rule(&fields, timing, &mut mistakes);
    if (missed, overlap) == (Missed::All, Overlap::Skip) {
        mistakes.add(
            "overlap",
            "skip leaves out firings that missed \"all\" makes up for, because they come at once",
            "allow, or missed \"one\" or \"skip\"",
        );
    }
    if let Some(Rule::Every { period, .. }) = &rule
        && jitter >= *period
    {
        mistakes.add(
            "jitter",
            "not shorter than every, so jobs would come in another order",
            "less than every",
        );
    }
    let (Some(rule), Some(job)) = (rule, job) else { return Err(mistakes.into_problem()) };
    let schedule = Schedule { rule, job, missed, catchup, overlap, jitter, from, until };
    // One that has fired for the last time can be put again.
    let is_known = defaults.stored.is_some_and(|stored| stored.has_times_of(&schedule));
    if mistakes.is_empty() && !is_known && schedule.next_after(defaults.now).is_none() {
        never(&schedule, defaults.now, &mut mistakes);
    }
    mistakes.or(NewSchedule { schedule, paused })
}

/// Adds a mistake that says why a schedule never fires after `now`.
fn never(schedule: &Schedule, now: Timestamp, mistakes: &mut Mistakes) {
    let without_end = Schedule { until: None, ..schedule.clone() };
    let (field, detail, allowed) = match (without_end.next_after(now), &schedule.rule) {
        (Some(next), _) => {
            let detail = format!("it never fires: its next time would be {next}");
            ("until", detail, "a time at or after that, or none")
        }
        (None, Rule::Cron(cron)) => {
            let detail = format!("{:?} never fires: no date is like this", cron.as_str());
            ("cron", detail, "an expression that some date matches")
        }
        (None, Rule::Every { .. }) => {
            ("from", "it is too far ahead".to_owned(), "a time that can be counted")
        }
    };
    mistakes.add(field, detail, allowed);
}

/// The field `job`; `None` if it is missing or wrong, which adds mistakes. Fails with 413 for a body that is too large,
/// and with 503 if `policies` are needed and not loaded.
fn job(
    fields: &Fields<'_>,
    defaults: &ScheduleDefaults<'_>,
    policies: Option<&Policies>,
    mistakes: &mut Mistakes,
) -> Result<Option<ScheduledJob>, Problem> {
    let Some(job) = object(fields, "job", JOB, mistakes) else { return Ok(None) };
    let mut inner = Mistakes::default();
    let mut names = ScheduledJobRequest::names();
    if job.get("key").is_some() {
        inner.add("key", "given for the job of a schedule; firings of a schedule have no key", "no key");
        names.push("key");
    }
    job.check_names("", &names, &mut inner);
    if !job.fit(&submit::LONG, &mut inner) {
        mistakes.add_within("job", inner);
        return Ok(None);
    }
    let judged = {
        let make_id = &mut |_: &_| defaults.id.firing(defaults.now);
        let make_token = &mut || Token::default();
        let (now, tenant) = (defaults.now, defaults.tenant);
        submit::build_job(
            &job,
            Defaults { now, make_id, make_token, trace: None, tenant },
            policies,
            &mut inner,
        )
    };
    // Those of the names are known before this.
    let judged = judged?;
    if judged.as_ref().is_some_and(|job| matches!(job.delivery.expires, Some(Expires::At(_)))) {
        inner.add(
            "expires",
            "a time, and the jobs of a schedule come again and again",
            "how long after it is due, such as \"30m\"",
        );
    }
    if let Some(size) = judged.as_ref().map(|job| job.delivery.body.bytes.len())
        && size > MAX_SCHEDULED_BODY
    {
        let detail =
            format!("the body has {size} bytes, and is kept with the schedule and copied into each job");
        let field = if job.get("body_base64").is_some() { "body_base64" } else { "body" };
        inner.add(
            field,
            detail,
            format!("at most {MAX_SCHEDULED_BODY} bytes; store more elsewhere and submit a reference"),
        );
    }
    mistakes.add_within("job", inner);
    let to_url_of_topic = job.get("url").is_none() && job.get("ttr").is_none();
    Ok(judged.map(|judged| ScheduledJob {
        topic: judged.key.topic,
        delivery: judged.delivery,
        to_url_of_topic,
    }))
}

#[cfg(test)]
mod tests;
