//! Schedules as they are shown, and as they are exported.

use ringback_core::clock::Timestamp;
use ringback_core::duration::format_duration;
use ringback_core::schedule::{Firing, Progress, Rule, Schedule, ScheduleId, ScheduleKey, ScheduleState};
use serde::Serialize;
use utoipa::ToSchema;

use crate::request_details::RequestDetails;

/// A schedule as a request puts it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ScheduleFields {
    /// The cron expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// The period, as a friendly duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<String>,
    /// One of the times of a period.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub anchor: Option<String>,
    /// The time zone of the cron expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// The job.
    pub job: ScheduledJobDetails,
    /// What becomes of missed firings: `skip`, `one` or `all`.
    pub missed: String,
    /// How late a missed firing is at most, to be made up for.
    pub catchup: String,
    /// Whether it fires while the last job has not ended: `allow` or `skip`.
    pub overlap: String,
    /// Each job is due up to so long after its time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<String>,
    /// It does not fire before.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub from: Option<String>,
    /// It does not fire after.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub until: Option<String>,
    /// Whether it is paused.
    pub paused: bool,
}

/// The job of a schedule.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ScheduledJobDetails {
    /// The topic.
    pub topic: String,
    /// The rest of the job.
    #[serde(flatten)]
    pub request: RequestDetails,
}

/// A schedule, and how far it has come.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "id": "daily-report", "cron": "0 8 * * MON-FRI", "time_zone": "Europe/Berlin",
    "job": {"topic": "reports", "url": "https://shop.example/report", "body": {"kind": "daily"}},
    "missed": "one", "catchup": "1h", "overlap": "allow", "paused": false,
    "created_at": "2026-11-20T09:30:00.000Z", "next_at": "2026-11-27T07:00:00.000Z",
    "last": {"at": "2026-11-26T07:00:00.000Z", "id": "daily-report~20261126T070000Z"},
    "fired": 5, "missed_firings": 0, "overlapped_firings": 0,
}))]
pub struct ScheduleResponse {
    /// Its id.
    pub id: String,
    /// Whose it is, in a list of all tenants; absent if it belongs to none, and in other answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The schedule.
    #[serde(flatten)]
    pub fields: ScheduleFields,
    /// When it was first put.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When it fires next; null if it is paused or has fired for the last time.
    #[schema(format = DateTime)]
    pub next_at: Option<String>,
    /// The last firing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<FiringDetails>,
    /// How many jobs it has submitted.
    pub fired: u64,
    /// How many firings were missed and not made up for, as far as they were counted.
    pub missed_firings: u64,
    /// How many firings were left out because the job of the one before had not ended.
    pub overlapped_firings: u64,
}

/// A firing of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct FiringDetails {
    /// Its time.
    #[schema(format = DateTime)]
    pub at: String,
    /// The id of its job.
    pub id: String,
}

impl FiringDetails {
    /// A firing of a schedule at a time.
    pub fn new(id: &ScheduleId, time: Timestamp) -> Self {
        Self { at: time.to_string(), id: id.firing(time).to_string() }
    }
}

impl From<&Firing> for FiringDetails {
    fn from(firing: &Firing) -> Self {
        Self { at: firing.time.to_string(), id: firing.id.to_string() }
    }
}

impl ScheduleResponse {
    /// A schedule and its progress, with secret header values masked.
    pub fn new(id: &ScheduleId, state: ScheduleState) -> Self {
        let progress = state.progress.clone();
        let Progress { created, next, last, fired, missed, overlapped, .. } = progress;
        Self {
            id: id.to_string(),
            tenant: None,
            fields: ScheduleFields::new(state, RequestDetails::masked),
            created_at: created.to_string(),
            next_at: next.map(|next| next.to_string()),
            last: last.as_ref().map(FiringDetails::from),
            fired,
            missed_firings: missed,
            overlapped_firings: overlapped,
        }
    }
}

impl ScheduleFields {
    fn new(state: ScheduleState, request: fn(ringback_core::job::Delivery) -> RequestDetails) -> Self {
        let ScheduleState { schedule, progress } = state;
        let Schedule { rule, job, missed, catchup, overlap, jitter, from, until } = schedule;
        let (cron, time_zone, every, anchor) = match rule {
            Rule::Cron(cron) => (Some(cron.to_string()), Some(cron.zone().to_string()), None, None),
            Rule::Every { period, anchor } => {
                (None, None, Some(format_duration(period)), Some(anchor.to_string()))
            }
        };
        let topic = job.topic.to_string();
        let mut request = request(job.delivery);
        if job.to_url_of_topic {
            request.url = None;
        }
        Self {
            cron,
            every,
            anchor,
            time_zone,
            job: ScheduledJobDetails { topic, request },
            missed: missed.to_string(),
            catchup: format_duration(catchup),
            overlap: overlap.to_string(),
            jitter: Some(jitter).filter(|jitter| !jitter.is_zero()).map(format_duration),
            from: from.map(|from| from.to_string()),
            until: until.map(|until| until.to_string()),
            paused: progress.paused,
        }
    }
}

/// A page of schedules.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SchedulesResponse {
    /// The schedules, by id.
    pub items: Vec<ScheduleResponse>,
    /// Where the next page begins; null on the last page.
    pub next: Option<String>,
}

/// The next firings of a schedule.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct NextFiringsResponse {
    /// The firings, in order. Fewer than asked for if it ends.
    pub items: Vec<FiringDetails>,
}

/// A schedule on its way to another installation: a line of an export. `schedule` is what a request puts there.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ScheduleLine {
    /// The tenant whose schedule it is; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Its id.
    pub id: String,
    /// The schedule, with the values of secret headers.
    pub schedule: ScheduleFields,
}

impl ScheduleLine {
    /// The line of a schedule.
    pub fn new(key: &ScheduleKey, state: ScheduleState) -> Self {
        Self {
            tenant: key.tenant.as_ref().map(ToString::to_string),
            id: key.id.to_string(),
            schedule: ScheduleFields::new(state, RequestDetails::whole),
        }
    }
}
