//! The problems of jobs that would exceed a limit of the store, and those about a single field.

use http::StatusCode;
use ringback_core::store_types::{Limit, MAX_LANES, MAX_TOPICS, MAX_WAITING_KEYS};
use ringback_wire::{FieldError, Problem};

/// A 422 problem about a single field.
pub fn invalid_field(field: &str, detail: impl Into<String>, allowed: impl Into<String>) -> Problem {
    Problem::fields(vec![FieldError {
        field: field.to_owned(),
        detail: detail.into(),
        allowed: allowed.into(),
    }])
}

/// The problem of a job that would exceed a limit of topics or origins: 422 for a shard's, 429 for a tenant's.
pub fn limit_reached(limit: Limit) -> Problem {
    match limit {
        Limit::Topics => invalid_field(
            "topic",
            format!(
                "the job's shard of the store has {MAX_TOPICS} topics with jobs, which is the limit, and this would be one more"
            ),
            "a topic that has jobs; use fewer topics, and distinguish jobs by their ids, headers or bodies",
        ),
        Limit::Lanes => invalid_field(
            "url",
            format!(
                "the job's shard of the store has jobs for {MAX_LANES} pairs of a topic and an origin, which is the limit, and this would be one more"
            ),
            "an origin that the topic has jobs for; use fewer origins or topics, or retry when jobs have ended",
        ),
        Limit::TenantTopics => tenant_has_all("topics with jobs"),
        Limit::TenantLanes => tenant_has_all("pairs of a topic and an origin with jobs"),
        Limit::Keys => {
            let detail = format!(
                "the job would wait behind another one of its key, and in its shard of the store jobs of {MAX_WAITING_KEYS} keys wait so, which is the limit; nothing was accepted: retry when jobs have ended"
            );
            Problem::new(StatusCode::TOO_MANY_REQUESTS, detail)
        }
    }
}

fn tenant_has_all(what: &str) -> Problem {
    let detail = format!(
        "the tenant has as many {what} in the job's shard of the store as it may: those of its quota, and at most half of what other tenants leave; nothing was accepted: use those that have jobs, or retry when jobs have ended"
    );
    Problem::new(StatusCode::TOO_MANY_REQUESTS, detail)
}
