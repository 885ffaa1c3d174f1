//! Calls about dead jobs: their pages, purges of many, and the call that revives many.

use ringback_core::clock::Timestamp;
use ringback_core::contract::MAX_RATE;
use ringback_core::job::Job;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::answer::JobResponse;
use super::effective::EffectiveSettings;
use super::fields::due::time;
use super::fields::object::{Fields, Mistakes, read, read_or_empty};
use super::fields::values::{REASON, parsed, reason};
use super::inspect::Inspection;
use super::problem::Problem;
use super::request::RequestDetails;

/// A dead job, with its request if that was asked for.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DeadJobDetails {
    /// The job.
    #[serde(flatten)]
    pub job: JobResponse,
    /// When it died.
    #[schema(format = DateTime)]
    pub died_at: String,
    /// With `include=request`: the request of the job. Absent if the job ended while the page was
    /// read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Box<RequestDetails>>,
    /// With `include=request`: the settings of its next attempt, if it is revived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective: Option<Box<EffectiveSettings>>,
}

impl DeadJobDetails {
    /// A job that died at this time, with its request if that is there.
    pub fn new(job: Job, died: Timestamp, inspection: Option<Inspection>) -> Self {
        let (request, effective) = Inspection::split(inspection);
        Self { job: job.into(), died_at: died.to_string(), request, effective }
    }
}

/// A page of dead jobs, in the order of death. It may be empty although there are more pages.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DeadJobsResponse {
    /// The jobs.
    pub items: Vec<DeadJobDetails>,
    /// The cursor of the next page; null on the last page. Opaque.
    pub next: Option<String>,
}

/// The result of purging many jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PurgeResponse {
    /// How many jobs this call has removed.
    pub purged: u64,
    /// The cursor of the next call; null when all are gone. Opaque.
    pub next: Option<String>,
}

/// The rate of a bulk revive without one, in jobs a second.
pub const DEFAULT_RATE: u32 = 100;

/// Which dead jobs of a topic to revive, and how fast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedriveAsk {
    /// Only jobs with this reason.
    pub reason: Option<String>,
    /// Only jobs that died at this time or later.
    pub after: Option<Timestamp>,
    /// Only jobs that died before this time.
    pub before: Option<Timestamp>,
    /// Jobs a second.
    pub rate: u32,
}

impl RedriveAsk {
    /// Parses a body. An empty one means all jobs, at [`DEFAULT_RATE`].
    ///
    /// # Errors
    /// A 400 problem if it is not a JSON object, 422 with all wrong fields.
    pub fn parse(json: &[u8]) -> Result<Self, Problem> {
        let known = ["reason", "died_after", "died_before", "rate"];
        read_or_empty(json, &known, |fields, mistakes| {
            let reason = reason(fields, REASON, mistakes);
            let mut died = |name| time(fields, name, mistakes);
            let (after, before) = (died("died_after"), died("died_before"));
            let rate = rate(fields, mistakes);
            Self { reason, after, before, rate: rate.unwrap_or(DEFAULT_RATE) }
        })
    }
}

/// The rate of a bulk operation, in jobs a second.
pub(super) fn rate(fields: &Fields<'_>, mistakes: &mut Mistakes) -> Option<u32> {
    let allowed = format!("1 to {MAX_RATE} jobs a second, a whole number");
    parsed(fields, "rate", &allowed, mistakes, |raw| {
        read::<u32>(raw).filter(|rate| (1..=MAX_RATE).contains(rate))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(json: &str) -> Vec<String> {
        let problem = RedriveAsk::parse(json.as_bytes()).unwrap_err();
        assert_eq!(problem.status, 422, "{json}: {problem:?}");
        problem.errors.into_iter().map(|error| error.field).collect()
    }

    #[test]
    fn a_bulk_revive_may_have_no_fields_or_all() {
        let all = RedriveAsk { reason: None, after: None, before: None, rate: 100 };
        for empty in ["", "  ", "{}", r#"{"reason":null,"rate":null}"#] {
            assert_eq!(RedriveAsk::parse(empty.as_bytes()), Ok(all.clone()), "{empty:?}");
        }
        let json = r#"{"reason":"gone","died_after":"1970-01-01T00:00:01Z","died_before":"1970-01-01T00:00:02.0001Z","rate":100000}"#;
        let ms = |ms| Some(Timestamp::from_millis(ms));
        let asked =
            RedriveAsk { reason: Some("gone".into()), after: ms(1000), before: ms(2001), rate: 100_000 };
        assert_eq!(RedriveAsk::parse(json.as_bytes()), Ok(asked));
    }

    #[test]
    fn wrong_fields_are_named() {
        for rate in ["0", "100001", "-1", "1.5", "\"5\"", "true", "99999999999"] {
            assert_eq!(fields(&format!(r#"{{"rate":{rate}}}"#)), ["rate"]);
        }
        assert_eq!(
            fields(r#"{"colour":1,"reason":"a b","died_after":5,"died_before":"now","rate":0}"#),
            ["colour", "reason", "died_after", "died_before", "rate"]
        );
        assert_eq!(fields(&format!(r#"{{"reason":"{}"}}"#, "x".repeat(65))), ["reason"]);
        assert_eq!(fields(r#"{"reason":"a","reason":"b"}"#), ["reason"]);
        for bad in ["[]", "5", "{", "null", "\u{feff}{}"] {
            assert_eq!(RedriveAsk::parse(bad.as_bytes()).unwrap_err().status, 400, "{bad:?}");
        }
    }
}
