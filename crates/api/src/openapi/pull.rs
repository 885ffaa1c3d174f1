//! What consumers say, for the document only; `ringback_core::wire` reads it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::request::Duration;

/// How many jobs, and for how long.
#[derive(Deserialize, Serialize, ToSchema)]
#[schema(example = json!({"max": 10, "ttr": "30s", "wait": "20s"}))]
#[serde(deny_unknown_fields)]
pub(crate) struct ReserveRequest {
    /// At most so many jobs.
    #[schema(minimum = 1, maximum = 100, default = 1)]
    max: Option<u32>,
    /// For so long, from 100 ms to 12 h; without it the job's own `ttr`, else that
    /// of the topic's policy, else 30 s.
    ttr: Option<Duration>,
    /// How long to wait where there are none, at most 60 s; without it not at all.
    wait: Option<Duration>,
}

/// What went wrong.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RetryRequest {
    /// How long to wait; without it as the job's retry policy says, and after its last tier the
    /// job is dead.
    delay: Option<Duration>,
    /// What went wrong, without control characters.
    #[schema(max_length = 128)]
    error: Option<String>,
}

/// Why a job is given up.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BuryRequest {
    /// A word, visible ASCII.
    #[schema(max_length = 64, default = "buried")]
    reason: Option<String>,
    /// What went wrong, without control characters.
    #[schema(max_length = 128)]
    error: Option<String>,
}

/// When a job is ready again.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReleaseRequest {
    /// How long it waits; without it it is ready at once.
    delay: Option<Duration>,
}

/// For how long.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RenewRequest {
    /// From now on, from 100 ms to 12 h; without it 30 s.
    ttr: Option<Duration>,
}

/// Which jobs are done.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FinishAllRequest {
    /// Their receipts.
    #[schema(min_items = 1, max_items = 1000)]
    receipts: Vec<String>,
}
