//! OpenAPI schemas of the requests of consumers: reserve, retry, bury, release, renew, finish. The
//! parsers are in `ringback_core::wire`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::job::Duration;

/// How many jobs to reserve, and for how long.
#[derive(Deserialize, Serialize, ToSchema)]
#[schema(example = json!({"max": 10, "ttr": "30s", "wait": "20s"}))]
#[serde(deny_unknown_fields)]
pub(crate) struct ReserveRequest {
    /// The most jobs to reserve.
    #[schema(minimum = 1, maximum = 100, default = 1)]
    max: Option<u32>,
    /// The lease, 100 ms to 12 h. By default the job's own `ttr`, else that of the topic's policy,
    /// else 30 s.
    ttr: Option<Duration>,
    /// How long to wait if there are no jobs, at most 60 s. By default not at all.
    wait: Option<Duration>,
}

/// Why the attempt failed.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RetryRequest {
    /// How long to wait before the next attempt. By default as the job's retry policy says; after its
    /// last tier the job is dead.
    delay: Option<Duration>,
    /// The error message, without control characters.
    #[schema(max_length = 128)]
    error: Option<String>,
}

/// Why the job is buried.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BuryRequest {
    /// A short reason of visible ASCII.
    #[schema(max_length = 64, default = "buried")]
    reason: Option<String>,
    /// The error message, without control characters.
    #[schema(max_length = 128)]
    error: Option<String>,
}

/// When the job is ready again.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReleaseRequest {
    /// How long it waits. By default it is ready at once.
    delay: Option<Duration>,
}

/// How long to keep the job.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RenewRequest {
    /// The lease from now, 100 ms to 12 h; 30 s by default.
    ttr: Option<Duration>,
}

/// The jobs that are done.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FinishAllRequest {
    /// Their receipts.
    #[schema(min_items = 1, max_items = 1000)]
    receipts: Vec<String>,
}
