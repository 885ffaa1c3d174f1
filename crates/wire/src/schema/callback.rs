//! OpenAPI schemas of retry policies, of statuses and expiries that end a job early, and of the states of ended jobs.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::values::{MaxDelay, RetryDelay, Time};

/// A retry policy: exactly one of `delays`, `preset` and `backoff`.
#[derive(Deserialize, Serialize, ToSchema)]
#[schema(example = json!({"delays": ["15s", "3m", "10m"], "max": 5, "jitter": 0.1}))]
#[serde(deny_unknown_fields)]
pub struct RetryPolicy {
    /// The delay after each failure.
    #[schema(min_items = 1, max_items = 50)]
    delays: Option<Vec<RetryDelay>>,
    /// A named list of delays.
    preset: Option<RetryPreset>,
    /// Delays that grow, from which the list is made.
    backoff: Option<Backoff>,
    /// After this number of failures the job is dead; not 0. Beyond the list its last delay repeats. -1
    /// means never.
    #[schema(minimum = -1, maximum = 4_294_967_295_u32)]
    max: Option<i64>,
    /// The share of a delay that may be added at random; 0.1 by default.
    #[schema(minimum = 0, maximum = 1)]
    jitter: Option<f64>,
}

/// Delays that grow: each is `factor` times as long as the one before, and none longer than `max`.
#[derive(Deserialize, Serialize, ToSchema)]
#[schema(example = json!({"base": "1s", "factor": 2, "max": "1h", "count": 15}))]
#[serde(deny_unknown_fields)]
pub struct Backoff {
    /// The first delay.
    base: RetryDelay,
    /// How much longer each is than the one before; 2 by default.
    #[schema(minimum = 1, maximum = 100)]
    factor: Option<f64>,
    /// The longest delay; by default 30 days.
    max: Option<RetryDelay>,
    /// How many there are.
    #[schema(minimum = 1, maximum = 50)]
    count: u32,
}

#[derive(Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RetryPreset {
    Default,
    StandardWebhooks,
    None,
}

/// The status of an answer after which a job is dead.
#[derive(Deserialize, Serialize, PartialEq, Eq, Hash, ToSchema)]
#[schema(minimum = 300, maximum = 599)]
pub struct FinalStatus(u16);

/// When a job expires: how long after it was first due, 1 ms to 10 years of 365 days, or a time.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(untagged)]
pub enum Expiry {
    After(MaxDelay),
    At(Time),
}

/// How a job ended. One that has expired is dead, with that reason.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum HistoryState {
    Done,
    Dead,
    Cancelled,
    Purged,
}
