//! OpenAPI schema of the topic policy. The parser is in `ringback_core::wire`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::job::{Duration, Retry};

/// Defaults for the jobs of a topic that do not set these fields themselves. All are optional.
#[derive(Deserialize, Serialize, ToSchema)]
#[schema(example = json!({
    "retry": {"delays": ["15s", "3m", "10m"], "max": -1}, "timeout": "5s",
    "headers": {"x-tenant": "a7"}, "expect_body": "success",
    "on_dead": "https://shop.example/dead",
}))]
#[serde(deny_unknown_fields)]
pub(crate) struct PolicyRequest {
    /// When failed jobs are retried.
    retry: Option<Retry>,
    /// The total deadline of one attempt, 100 ms to 10 min.
    timeout: Option<Duration>,
    /// The lease of a pull job, 100 ms to 12 h.
    ttr: Option<Duration>,
    /// The callback URL of jobs that are submitted later with neither `url` nor `ttr`.
    #[schema(max_length = 2048)]
    url: Option<String>,
    /// Headers that are added unless the job has one of the same name. Limits and reserved names are
    /// those of a job.
    headers: Option<BTreeMap<String, String>>,
    /// The body that a 2xx response of the receiver must have, apart from surrounding ASCII white
    /// space. With any other body the attempt fails. At most 1,024 bytes, without surrounding white space.
    #[schema(max_length = 1024)]
    expect_body: Option<String>,
    /// Which attempts are logged: `failed`, `all` or `off`.
    #[schema(pattern = "^(failed|all|off)$")]
    attempts: Option<String>,
    /// The URL for dead-letter notices of jobs without an `on_dead` of their own, once the policy is
    /// in effect. Not for the topic `ringback.on-dead`.
    #[schema(format = "uri", max_length = 2048)]
    on_dead: Option<String>,
}
