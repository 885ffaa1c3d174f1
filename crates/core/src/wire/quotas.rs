//! The quotas of tenants: the request to set one, the answers that show them, and the JSON under which stores keep them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::fields::object::{Mistakes, open, read};
use super::fields::values::parsed;
use super::problem::Problem;
use crate::access::{MAX_JOBS_PER_SECOND, MAX_QUOTA_JOBS, Quota, QuotaOf};

const RATE: &str = "a whole number from 1 to 1000000; omit it for no limit";
const JOBS: &str = "a whole number from 1 to 1000000000; omit it for no limit";

/// Parses the request to set a quota.
///
/// # Errors
/// A 400 problem if it is not a JSON object, or 422 with all wrong fields.
pub fn parse_quota(json: &[u8]) -> Result<Quota, Problem> {
    let fields = open(json)?;
    let mut mistakes = Mistakes::default();
    fields.check_names("", &["jobs_per_second", "jobs"], &mut mistakes);
    let jobs_per_second = parsed(&fields, "jobs_per_second", RATE, &mut mistakes, |raw| {
        read::<u32>(raw).filter(|rate| (1..=MAX_JOBS_PER_SECOND).contains(rate))
    });
    let jobs = parsed(&fields, "jobs", JOBS, &mut mistakes, |raw| {
        read::<u64>(raw).filter(|jobs| (1..=MAX_QUOTA_JOBS).contains(jobs))
    });
    mistakes.or(Quota { jobs_per_second, jobs })
}

/// The quota of a tenant, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QuotaAnswer {
    /// The tenant; `*` for each tenant that has no quota of its own.
    pub tenant: String,
    /// How many jobs it may submit a second; null for any number.
    pub jobs_per_second: Option<u32>,
    /// How many jobs it may have that are delayed, ready, reserved or dead; null for any number.
    pub jobs: Option<u64>,
}

impl QuotaAnswer {
    /// The quota of a tenant.
    pub fn new(of: &QuotaOf, Quota { jobs_per_second, jobs }: Quota) -> Self {
        Self { tenant: of.to_string(), jobs_per_second, jobs }
    }
}

/// All quotas, by tenant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QuotasAnswer {
    /// The quotas.
    pub items: Vec<QuotaAnswer>,
}

/// A quota as stores keep it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    jobs_per_second: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    jobs: Option<u64>,
}

/// The JSON of a quota for a store.
pub fn written_quota(Quota { jobs_per_second, jobs }: Quota) -> String {
    serde_json::to_string(&Written { jobs_per_second, jobs }).expect("plain data always serialises")
}

/// Reads what [`written_quota`] has made; `None` if it is something else, such as the quota of a later version.
pub fn parse_stored_quota(written: &str) -> Option<Quota> {
    let Written { jobs_per_second, jobs } = serde_json::from_str(written).ok()?;
    Some(Quota { jobs_per_second, jobs })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_read_as_it_is_written() {
        let quota = parse_quota(br#"{"jobs_per_second":50,"jobs":1000}"#).unwrap();
        assert_eq!(quota, Quota { jobs_per_second: Some(50), jobs: Some(1000) });
        assert_eq!(parse_stored_quota(&written_quota(quota)), Some(quota));
        for json in [r#"{"jobs":1}"#, "{}"] {
            let quota = parse_quota(json.as_bytes()).unwrap();
            assert_eq!(parse_stored_quota(&written_quota(quota)), Some(quota));
        }
        assert_eq!(parse_stored_quota(r#"{"jobs":1,"later":2}"#), None);
    }

    #[test]
    fn what_is_wrong_with_a_quota_is_named() {
        for (json, field) in [
            (r#"{"jobs":0}"#, "jobs"),
            (r#"{"jobs":1000000001}"#, "jobs"),
            (r#"{"jobs_per_second":1.5}"#, "jobs_per_second"),
            (r#"{"jobs_per_second":0,"jobs":1}"#, "jobs_per_second"),
            (r#"{"jobs":1,"bytes":2}"#, "bytes"),
        ] {
            let problem = parse_quota(json.as_bytes()).unwrap_err();
            assert_eq!((problem.status, &*problem.errors[0].field), (422, field), "{json}");
        }
        assert_eq!(parse_quota(b"[]").unwrap_err().status, 400);
    }
}
