//! The quotas of tenants: the request to set one, and the answers that show them. `ringback_core` has the stored form.

use ringback_core::access::{MAX_JOBS_PER_SECOND, MAX_QUOTA_JOBS, Quota, QuotaOf};
use ringback_core::job::MAX_BODY;
use ringback_core::store_types::{MAX_LANES, MAX_TOPICS};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::declare::request;
use super::kinds::Whole;

request! {
    /// What a tenant may use. Without a limit it may use any number, whatever the quota of `*` says.
    #[example {"jobs_per_second": 200, "jobs": 1_000_000}]
    pub struct QuotaRequest(open) {
        /// How many jobs it may submit a second. If it is left out, any number.
        jobs_per_second: Whole<u32, 1, { MAX_JOBS_PER_SECOND as u64 }>
            ["a whole number from 1 to 1000000; omit it for no limit"];
        /// How many jobs it may have that are delayed, ready, reserved or dead. If it is left out, any number.
        jobs: Whole<u64, 1, MAX_QUOTA_JOBS> ["a whole number from 1 to 1000000000; omit it for no limit"];
        /// How many topics of it may have jobs or be paused in a shard of the store. If it is left out, half of what the
        /// others leave, which is the most in any case.
        topics: Whole<u32, 1, MAX_TOPICS>
            ["a whole number from 1 to 10000; omit it for no limit but half of what the others leave"];
        /// For how many pairs of a topic and an origin it may have jobs in a shard, likewise.
        lanes: Whole<u32, 1, MAX_LANES>
            ["a whole number from 1 to 100000; omit it for no limit but half of what the others leave"];
        /// How many bytes the body of a job may have. If it is left out, as many as any body may have.
        body_bytes: Whole<u32, 1, { MAX_BODY as u64 }>
            ["a whole number from 1 to 262144; omit it for no limit but that of all bodies"];
    }
}

impl From<QuotaRequest> for Quota {
    fn from(QuotaRequest { jobs_per_second, jobs, topics, lanes, body_bytes }: QuotaRequest) -> Self {
        Self { jobs_per_second, jobs, topics, lanes, body_bytes }
    }
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
        let quota = Quota::from(QuotaRequest::parse(all).unwrap());
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
            let problem = QuotaRequest::parse(json.as_bytes()).unwrap_err();
            assert_eq!((problem.status, &*problem.errors[0].field), (422, field), "{json}");
        }
        assert_eq!(QuotaRequest::parse(b"[]").unwrap_err().status, 400);
    }
}
