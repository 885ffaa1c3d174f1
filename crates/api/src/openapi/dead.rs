//! What a call that revives many dead jobs may say, for the document only; `ringback_core::wire`
//! reads it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Which dead jobs, and how fast.
#[derive(Deserialize, Serialize, ToSchema)]
#[schema(example = json!({"reason": "exhausted", "died_before": "2026-11-20T09:30:00Z", "rate": 200}))]
#[serde(deny_unknown_fields)]
pub(crate) struct ReviveRequest {
    /// Dead for this reason only: exhausted, gone, lost, or what a consumer has given.
    #[schema(max_length = 64)]
    reason: Option<String>,
    /// That died at this time or later, by RFC 3339.
    #[schema(format = DateTime, example = "2026-11-19T00:00:00Z")]
    died_after: Option<String>,
    /// That died before this time, by RFC 3339.
    #[schema(format = DateTime, example = "2026-11-20T09:30:00Z")]
    died_before: Option<String>,
    /// So many a second.
    #[schema(minimum = 1, maximum = 100_000, default = 100)]
    rate: Option<u32>,
}
