//! OpenAPI schemas of the filter of jobs and of bulk operations.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::requests::PendingState;
use super::values::{
    DeadReason, Delay, DueTime, ErrorPart, HostAndPort, IdPrefix, TagText, Time, TopicName, ZoneName,
};

/// A filter of jobs, in a query or in the body of a bulk operation. Each field that is there must fit.
#[derive(Deserialize, Serialize, IntoParams, ToSchema)]
#[into_params(parameter_in = Query)]
#[schema(as = JobFilter)]
#[serde(deny_unknown_fields)]
pub struct FilterFields {
    /// Only jobs of this topic.
    topic: Option<TopicName>,
    /// Only jobs in this state. For a bulk operation one that it changes.
    state: Option<PendingState>,
    /// Only jobs with this tag.
    tag: Option<TagText>,
    /// Only jobs for this host; without a port for all its ports.
    host: Option<HostAndPort>,
    /// Only dead jobs with this reason.
    reason: Option<DeadReason>,
    /// Only jobs whose last failed attempt was answered with this status.
    #[param(minimum = 100, maximum = 599)]
    #[schema(minimum = 100, maximum = 599)]
    status: Option<u16>,
    /// Only jobs with this text in the error of the last failed attempt.
    error: Option<ErrorPart>,
    /// Only jobs that are due at this time or later.
    due_after: Option<Time>,
    /// Only jobs that are due before this time.
    due_before: Option<Time>,
    /// Only jobs that were created at this time or later.
    created_after: Option<Time>,
    /// Only jobs that were created before this time.
    created_before: Option<Time>,
    /// Only jobs whose last failed attempt was at this time or later.
    failed_after: Option<Time>,
    /// Only jobs whose last failed attempt was before this time.
    failed_before: Option<Time>,
    /// Only jobs whose id begins with this.
    id_prefix: Option<IdPrefix>,
}

/// Which jobs to cancel, and how fast.
#[derive(Deserialize, Serialize, ToSchema)]
#[schema(example = json!({"filter": {"tag": "customer:42"}, "dry_run": true}))]
#[serde(deny_unknown_fields)]
pub struct BulkCancelRequest {
    /// Which jobs. One field at least, unless `all` is true.
    filter: Option<FilterFields>,
    /// Whether to change all jobs; only without a filter.
    all: Option<bool>,
    /// The number of jobs per second; 100,000 by default.
    #[schema(minimum = 1, maximum = 100_000)]
    rate: Option<u32>,
    /// Whether to count the jobs and to change nothing.
    dry_run: Option<bool>,
}

/// Which delayed jobs to run now, and how fast.
#[derive(Deserialize, Serialize, ToSchema)]
#[schema(example = json!({"filter": {"host": "merchant.example", "due_before": "2026-11-20T09:30:00Z"}, "rate": 50}))]
#[serde(deny_unknown_fields)]
pub struct BulkRunRequest {
    /// Which jobs. One field at least, unless `all` is true.
    filter: Option<FilterFields>,
    /// Whether to change all jobs; only without a filter.
    all: Option<bool>,
    /// The number of jobs per second; 100 by default.
    #[schema(minimum = 1, maximum = 100_000)]
    rate: Option<u32>,
    /// Whether to count the jobs and to change nothing.
    dry_run: Option<bool>,
}

/// Which dead jobs to revive, and how fast.
#[derive(Deserialize, Serialize, ToSchema)]
#[schema(example = json!({"filter": {"host": "merchant.example", "status": 503}, "rate": 50}))]
#[serde(deny_unknown_fields)]
pub struct BulkReviveRequest {
    /// Which jobs. One field at least, unless `all` is true.
    filter: Option<FilterFields>,
    /// Whether to change all jobs; only without a filter.
    all: Option<bool>,
    /// The number of jobs per second; 100 by default.
    #[schema(minimum = 1, maximum = 100_000)]
    rate: Option<u32>,
    /// Whether to count the jobs and to change nothing.
    dry_run: Option<bool>,
}

/// Which dead jobs to remove, and how fast.
#[derive(Deserialize, Serialize, ToSchema)]
#[schema(example = json!({"filter": {"reason": "gone"}}))]
#[serde(deny_unknown_fields)]
pub struct BulkPurgeRequest {
    /// Which jobs. One field at least, unless `all` is true.
    filter: Option<FilterFields>,
    /// Whether to change all jobs; only without a filter.
    all: Option<bool>,
    /// The number of jobs per second; 100,000 by default.
    #[schema(minimum = 1, maximum = 100_000)]
    rate: Option<u32>,
    /// Whether to count the jobs and to change nothing.
    dry_run: Option<bool>,
}

/// Which jobs to reschedule, how fast, and until when: exactly one of `delay` and `at`.
#[derive(Deserialize, Serialize, ToSchema)]
#[schema(example = json!({"filter": {"topic": "pay.notify", "due_before": "2026-11-20T09:30:00Z"}, "delay": "1h"}))]
#[serde(deny_unknown_fields)]
pub struct BulkRescheduleRequest {
    /// Which jobs. One field at least, unless `all` is true.
    filter: Option<FilterFields>,
    /// Whether to change all jobs; only without a filter.
    all: Option<bool>,
    /// The number of jobs per second; 100,000 by default.
    #[schema(minimum = 1, maximum = 100_000)]
    rate: Option<u32>,
    /// Whether to count the jobs and to change nothing.
    dry_run: Option<bool>,
    /// How long after its change a job is due; 0 means at once.
    delay: Option<Delay>,
    /// A time at most 10 years ahead, as in a submit. A time in the past means at once.
    at: Option<DueTime>,
    /// The time zone of `at`, as in a submit. Only together with `at`.
    time_zone: Option<ZoneName>,
}
