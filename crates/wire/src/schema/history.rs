//! OpenAPI schemas of the calls on the history.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::values::{
    DeadReason, HostText, JobIdText, ReplayCursorText, ReplayName, TagText, Time, TopicName,
};

/// Which jobs of the history to submit again, and how.
#[derive(Deserialize, Serialize, ToSchema)]
#[schema(example = json!({"filter": {"topic": "pay.notify", "state": "dead", "finished_after": "2026-11-20T00:00:00Z"}, "rate": 50}))]
#[serde(deny_unknown_fields)]
pub struct ReplayRequest {
    /// Which ended jobs to submit again.
    filter: HistoryFilterFields,
    /// How many jobs a second; 100 by default.
    #[schema(minimum = 1, maximum = 1000)]
    rate: Option<u32>,
    /// `new`, the default: under new ids. `same`: under those that they had.
    ids: Option<ReplayIds>,
    /// Its name, for new ids.
    name: Option<ReplayName>,
    /// `next` of the previous answer; absent in the first call.
    cursor: Option<ReplayCursorText>,
}

/// Which ended jobs of the history; all if it is empty.
#[derive(Deserialize, Serialize, ToSchema)]
#[schema(as = HistoryFilter)]
#[serde(deny_unknown_fields)]
pub struct HistoryFilterFields {
    /// Only ended jobs of this topic.
    topic: Option<TopicName>,
    /// Only ended jobs with this id.
    id: Option<JobIdText>,
    /// Only ended jobs with this tag.
    tag: Option<TagText>,
    /// Only ended jobs in this state.
    state: Option<HistoryState>,
    /// Only ended jobs with this reason.
    reason: Option<DeadReason>,
    /// Only ended jobs with a URL of this host.
    host: Option<HostText>,
    /// Only ended jobs at this time or later.
    finished_after: Option<Time>,
    /// Only ended jobs before this time.
    finished_before: Option<Time>,
}

/// Under which ids a replay submits jobs.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReplayIds {
    New,
    Same,
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
