//! The declarations of the request to put a schedule and of the job in it, with the kinds of their own fields.

use std::time::Duration;

use ringback_core::schedule::{DEFAULT_CATCHUP, MAX_CATCHUP, MAX_JITTER, Missed, Overlap};
use ringback_core::written_time::Zone;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use crate::declare::request;
use crate::field_parsers::object::{parse_text, read};
use crate::kinds::{AnyJson, Given, kinds, within, worded};
use crate::schema::{
    Base64, CallbackUrl, Catchup, CronExpression, DueTime, MaxDelay, ScheduleJitter, SchedulePeriod,
    TopicName, ZoneName,
};
use crate::submit::JobRequest;

request! {
    /// When to submit which job. Exactly one of `cron` and `every`.
    #[example {
        "cron": "0 8 * * MON-FRI", "time_zone": "Europe/Berlin",
        "job": {"topic": "reports", "url": "https://shop.example/report", "body": {"kind": "daily"}},
        "missed": "one", "catchup": "1h", "overlap": "skip",
    }]
    pub struct ScheduleRequest(open) {
        /// The times at which it fires. Hours that are numbers are those of the clock: a time that clocks skip fires
        /// once, after the gap, and one that comes twice fires once. Where the hours begin with `*`, an hour that comes
        /// twice fires twice, and one that is skipped does not fire.
        cron: Given<CronExpression>;
        /// How long from one firing to the next.
        every: Given<SchedulePeriod>;
        /// One of the times of `every`; the others are whole periods from it. By default the anchor of
        /// the replaced schedule if that has the same period, else `from`, else now: then it fires first after a period.
        anchor: Given<DueTime>;
        /// The time zone of `cron`, by default UTC, and of the other times if they have no offset, which need it.
        time_zone: ZoneName;
        /// The job.
        job: Given<ScheduledJobRequest> [JOB], required;
        /// What becomes of firings that were missed because nobody was there to make them, so that they are more than a
        /// minute late: `skip` makes none, `one`, the default, makes the last, `all` makes all, the last 1,000 at most. Of
        /// several times that come within a minute, `skip` and `one` make the last.
        missed: Missed, or Missed::default();
        /// How late a missed firing is at most, to be made up for; 1 h by default. Less than a minute has no effect.
        catchup: Catchup, or DEFAULT_CATCHUP;
        /// Whether it fires while the job of the firing before is delayed, ready or reserved; `allow` by default.
        overlap: Overlap, or Overlap::default();
        /// Each job is due up to so long after its time. How long follows from its id.
        jitter: ScheduleJitter, or Duration::ZERO;
        /// It does not fire before.
        from: Given<DueTime>;
        /// It does not fire after.
        until: Given<DueTime>;
        /// Whether it is paused. By default it stays as it is, and a new one is not.
        paused: Paused;
    }
}

/// What the field `job` is.
pub(super) const JOB: &str =
    "an object with the fields of a job, without id, key, delay, at, time_zone, if_exists and max_delay";

request! {
    /// The job of a schedule: the fields of a submitted job, without its id and its due time, which come from the firing.
    pub struct ScheduledJobRequest of JobRequest
        without ["id", "key", "delay", "at", "time_zone", "if_exists", "max_delay"]
    {
        /// The topic, which stays.
        topic: Given<TopicName>, required;
        /// The callback URL. With neither `url` nor `ttr` each job goes to the URL that the policy of its topic has then,
        /// or is for pull if that has none.
        url: Given<CallbackUrl>;
        /// Any JSON, at most 32 KiB and 64 levels deep.
        body: AnyJson;
        /// A body that is not JSON, at most 32 KiB. Not together with `body`.
        body_base64: Given<Base64>;
        /// How long after it was first due each job expires.
        expires: Given<MaxDelay>;
    }
}

/// Whether a schedule is paused.
pub struct Paused;

kinds! {
    ZoneName: Zone =
        worded("is not a known time zone", Zone::ALLOWED, |raw| Zone::named(&read::<String>(raw)?).ok());
    Missed: Self = worded("is not one of its values", "skip, one or all", parse_text);
    Overlap: Self = worded("is not one of its values", "allow or skip", parse_text);
    Catchup: Duration = within("is out of its range", Duration::from_secs(1)..=MAX_CATCHUP, "1 s to 7 days");
    ScheduleJitter: Duration = within("is out of its range", Duration::ZERO..=MAX_JITTER, "at most 1 day");
    Paused: bool = worded("is not a boolean", "true or false", read),
        as ObjectBuilder::new().schema_type(Type::Boolean);
}
