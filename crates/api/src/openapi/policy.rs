//! What is said of a topic, for the document only; `ringback_core::wire` reads it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::request::{Duration, Retry};

/// What the jobs of a topic do not say themselves. Each field may be absent.
#[derive(Deserialize, Serialize, ToSchema)]
#[schema(example = json!({
    "retry": {"delays": ["15s", "3m", "10m"], "max": -1}, "timeout": "5s",
    "headers": {"x-tenant": "a7"}, "expect_body": "success",
    "on_dead": "https://shop.example/dead",
}))]
#[serde(deny_unknown_fields)]
pub(crate) struct PolicyRequest {
    /// When failed jobs are tried again.
    retry: Option<Retry>,
    /// The total deadline of one attempt, 100 ms to 10 min.
    timeout: Option<Duration>,
    /// How long a consumer has a job for pull, 100 ms to 12 h.
    ttr: Option<Duration>,
    /// Where jobs go that are submitted from then on with neither `url` nor `ttr`.
    #[schema(max_length = 2048)]
    url: Option<String>,
    /// Headers that are added where the job has none of the same name; limits and reserved names
    /// are those of a job.
    headers: Option<BTreeMap<String, String>>,
    /// What a 2xx answer of the receiver must be, but for ASCII white space around it; with any
    /// other the attempt has failed. At most 1,024 bytes, without white space at its ends.
    #[schema(max_length = 1024)]
    expect_body: Option<String>,
    /// Which attempts are logged: `failed`, `all` or `off`.
    #[schema(pattern = "^(failed|all|off)$")]
    attempts: Option<String>,
    /// Where the deaths of jobs are told that do not say so themselves, from when the policy is
    /// known on. Not for the topic `ringback.on-dead`.
    #[schema(format = "uri", max_length = 2048)]
    on_dead: Option<String>,
}
