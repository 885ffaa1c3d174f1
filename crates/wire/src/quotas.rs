//! The quotas of tenants: the request to set one, the answers that show them, and the JSON under which stores keep them.

use ringback_core::access::{MAX_JOBS_PER_SECOND, MAX_QUOTA_JOBS, Quota, QuotaOf};
use ringback_core::contract::{MAX_LANES, MAX_TOPICS};
use ringback_core::job::MAX_BODY;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::fields::object::{Mistakes, open, read};
use super::fields::values::parsed;
use super::problem::Problem;

const RATE: &str = "a whole number from 1 to 1000000; omit it for no limit";
const JOBS: &str = "a whole number from 1 to 1000000000; omit it for no limit";
const TOPICS: &str = "a whole number from 1 to 10000; omit it for no limit but half of what the others leave";
const LANES: &str = "a whole number from 1 to 100000; omit it for no limit but half of what the others leave";
const BODY_BYTES: &str = "a whole number from 1 to 262144; omit it for no limit but that of all bodies";

/// Parses the request to set a quota.
///
/// # Errors
/// A 400 problem if it is not a JSON object, or 422 with all wrong fields.
pub fn parse_quota(json: &[u8]) -> Result<Quota, Problem> {
    let fields = open(json)?;
    let mut mistakes = Mistakes::default();
    fields.check_names("", &["jobs_per_second", "jobs", "topics", "lanes", "body_bytes"], &mut mistakes);
    let jobs_per_second = parsed(&fields, "jobs_per_second", RATE, &mut mistakes, |raw| {
        read::<u32>(raw).filter(|rate| (1..=MAX_JOBS_PER_SECOND).contains(rate))
    });
    let jobs = parsed(&fields, "jobs", JOBS, &mut mistakes, |raw| {
        read::<u64>(raw).filter(|jobs| (1..=MAX_QUOTA_JOBS).contains(jobs))
    });
    let mut limit = |name, allowed, most: u64| {
        parsed(&fields, name, allowed, &mut mistakes, |raw| {
            read::<u32>(raw).filter(|n| (1..=most).contains(&u64::from(*n)))
        })
    };
    let topics = limit("topics", TOPICS, MAX_TOPICS);
    let lanes = limit("lanes", LANES, MAX_LANES);
    let body_bytes = limit("body_bytes", BODY_BYTES, MAX_BODY as u64);
    mistakes.or(Quota { jobs_per_second, jobs, topics, lanes, body_bytes })
}

/// The quota of a tenant, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QuotaResponse {
    /// The tenant; `*` for each tenant that has no quota of its own.
    pub tenant: String,
    /// How many jobs it may submit a second; null for any number.
    pub jobs_per_second: Option<u32>,
    /// How many jobs it may have that are delayed, ready, reserved or dead; null for any number.
    pub jobs: Option<u64>,
    /// How many topics with jobs it may have in a shard; null for half of what the others leave.
    pub topics: Option<u32>,
    /// How many lanes with jobs, which are pairs of a topic and an origin, it may have in a shard; null for half of what
    /// the others leave.
    pub lanes: Option<u32>,
    /// How many bytes the body of a job may have; null for as many as any body may have.
    pub body_bytes: Option<u32>,
    /// A warning that the quota has no effect yet, because the API has no root key and so no caller has a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl QuotaResponse {
    /// The quota of a tenant.
    pub fn new(of: &QuotaOf, quota: Quota) -> Self {
        let Quota { jobs_per_second, jobs, topics, lanes, body_bytes } = quota;
        Self { tenant: of.to_string(), jobs_per_second, jobs, topics, lanes, body_bytes, note: None }
    }
}

/// All quotas, by tenant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QuotasResponse {
    /// The quotas.
    pub items: Vec<QuotaResponse>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_read_as_it_is_written() {
        let all = br#"{"jobs_per_second":50,"jobs":1000,"topics":5,"lanes":7,"body_bytes":9}"#;
        let quota = parse_quota(all).unwrap();
        let expected = Quota {
            jobs_per_second: Some(50),
            jobs: Some(1000),
            topics: Some(5),
            lanes: Some(7),
            body_bytes: Some(9),
        };
        assert_eq!(quota, expected);
    }

    #[test]
    fn what_is_wrong_with_a_quota_is_named() {
        for (json, field) in [
            (r#"{"jobs":0}"#, "jobs"),
            (r#"{"jobs":1000000001}"#, "jobs"),
            (r#"{"jobs_per_second":1.5}"#, "jobs_per_second"),
            (r#"{"jobs_per_second":0,"jobs":1}"#, "jobs_per_second"),
            (r#"{"jobs":1,"bytes":2}"#, "bytes"),
            (r#"{"topics":10001}"#, "topics"),
            (r#"{"lanes":0}"#, "lanes"),
            (r#"{"body_bytes":262145}"#, "body_bytes"),
        ] {
            let problem = parse_quota(json.as_bytes()).unwrap_err();
            assert_eq!((problem.status, &*problem.errors[0].field), (422, field), "{json}");
        }
        assert_eq!(parse_quota(b"[]").unwrap_err().status, 400);
    }
}
