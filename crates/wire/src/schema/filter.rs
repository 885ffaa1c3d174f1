//! The OpenAPI schemas of the filter of jobs, and of the states that it can name.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::values::{DeadReason, ErrorPart, HostAndPort, IdPrefix, TagText, Time, TopicName};

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

/// The states of jobs that have not ended.
#[derive(Deserialize, Serialize, ToSchema)]
#[schema(rename_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum PendingState {
    Delayed,
    Ready,
    Reserved,
    Dead,
}
