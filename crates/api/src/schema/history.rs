//! OpenAPI schemas of the calls on the history. The parsers are in `ringback_wire`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::values::{HostText, JobName, ReasonText, ReplayCursorText, ReplayName, TagText, Time, TopicName};

/// Which jobs of the history to submit again, and how.
#[derive(Deserialize, Serialize, ToSchema)]
#[schema(example = json!({"filter": {"topic": "pay.notify", "state": "dead", "finished_after": "2026-11-20T00:00:00Z"}, "rate": 50}))]
#[serde(deny_unknown_fields)]
pub(crate) struct ReplayRequest {
    /// Which ended jobs to submit again.
    filter: HistoryFilterFields,
    /// How many jobs a second.
    #[schema(minimum = 1, maximum = 1000, default = 100)]
    rate: Option<u32>,
    /// `new`: under new ids. `same`: under those that they had.
    #[schema(default = "new")]
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
pub(crate) struct HistoryFilterFields {
    /// Only ended jobs of this topic.
    topic: Option<TopicName>,
    /// Only ended jobs with this id.
    id: Option<JobName>,
    /// Only ended jobs with this tag.
    tag: Option<TagText>,
    /// Only ended jobs in this state.
    state: Option<EndState>,
    /// Only ended jobs with this reason.
    reason: Option<ReasonText>,
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
pub(crate) enum ReplayIds {
    New,
    Same,
}

/// How a job ended. One that has expired is dead, with that reason.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum EndState {
    Done,
    Dead,
    Cancelled,
    Purged,
}
