//! Requests and answers about many dead jobs of a topic: their pages, purging them, and reviving them at a rate.

use ringback_core::clock::Timestamp;
use ringback_core::job::Job;
use ringback_core::store_types::MAX_RATE;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::declare::request;
use super::effective::EffectiveSettings;
use super::field_parsers::values::REASON;
use super::inspect::Inspection;
use super::job_answers::JobResponse;
use super::kinds::Whole;
use super::request_details::RequestDetails;
use super::schema::{DeadReason, Time};

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
    /// The answer for a job that died at this time, with its request and settings if there is an inspection.
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

/// How many jobs a second a bulk operation changes.
pub(super) type Rate = Whole<u32, 1, { MAX_RATE as u64 }>;
/// What a rate can be.
pub(super) const RATE: &str = "1 to 100000 jobs a second, a whole number";

request! {
    /// Which dead jobs to revive, and how fast.
    #[example {"reason": "exhausted", "died_before": "2026-11-20T09:30:00Z", "rate": 200}]
    pub struct ReviveRequest(open_or_empty) {
        /// Only jobs with this reason.
        reason: DeadReason [REASON];
        /// Only jobs that died at this time or later.
        died_after: Time;
        /// Only jobs that died before this time.
        died_before: Time;
        /// The number of jobs per second; 100 by default.
        rate: Rate [RATE], or DEFAULT_RATE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(json: &str) -> Vec<String> {
        let problem = ReviveRequest::parse(json.as_bytes()).unwrap_err();
        assert_eq!(problem.status, 422, "{json}: {problem:?}");
        problem.errors.into_iter().map(|error| error.field).collect()
    }

    #[test]
    fn a_bulk_revive_may_have_no_fields_or_all() {
        let all = ReviveRequest { reason: None, died_after: None, died_before: None, rate: 100 };
        for empty in ["", "  ", "{}", r#"{"reason":null,"rate":null}"#] {
            assert_eq!(ReviveRequest::parse(empty.as_bytes()), Ok(all.clone()), "{empty:?}");
        }
        let json = r#"{"reason":"gone","died_after":"1970-01-01T00:00:01Z","died_before":"1970-01-01T00:00:02.0001Z","rate":100000}"#;
        let ms = |ms| Some(Timestamp::from_millis(ms));
        let asked = ReviveRequest {
            reason: Some("gone".into()),
            died_after: ms(1000),
            died_before: ms(2001),
            rate: 100_000,
        };
        assert_eq!(ReviveRequest::parse(json.as_bytes()), Ok(asked));
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
            assert_eq!(ReviveRequest::parse(bad.as_bytes()).unwrap_err().status, 400, "{bad:?}");
        }
    }
}
