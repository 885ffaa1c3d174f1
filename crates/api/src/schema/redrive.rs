//! OpenAPI schema of the request that revives many dead jobs. The parser is in `ringback_core::wire`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Which dead jobs to revive, and how fast.
#[derive(Deserialize, Serialize, ToSchema)]
#[schema(example = json!({"reason": "exhausted", "died_before": "2026-11-20T09:30:00Z", "rate": 200}))]
#[serde(deny_unknown_fields)]
pub(crate) struct ReviveRequest {
    /// Only jobs with this reason: exhausted, gone, lost, or one given by a consumer.
    #[schema(max_length = 64)]
    reason: Option<String>,
    /// Only jobs that died at this time (RFC 3339) or later.
    #[schema(format = DateTime, example = "2026-11-19T00:00:00Z")]
    died_after: Option<String>,
    /// Only jobs that died before this time (RFC 3339).
    #[schema(format = DateTime, example = "2026-11-20T09:30:00Z")]
    died_before: Option<String>,
    /// The number of jobs per second.
    #[schema(minimum = 1, maximum = 100_000, default = 100)]
    rate: Option<u32>,
}
