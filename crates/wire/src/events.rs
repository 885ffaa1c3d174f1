//! An event of a job, as the API streams it.

use ringback_core::clock::millis;
use ringback_core::store_types::{AttemptEnded, Event, EventKind};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An event of a job. The name of the server-sent event is its kind: `submitted`, `promoted`, `attempt`,
/// `done`, `dead` or `cancelled`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({"topic": "pay.notify", "id": "order-1", "at": "2026-11-20T09:30:15.017Z",
    "attempt": 1, "outcome": "retry", "due_at": "2026-11-20T09:30:30.017Z", "status": 503, "duration_ms": 17}))]
pub struct JobEvent {
    /// The tenant whose job it is; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The job's topic.
    pub topic: String,
    /// The job's id.
    pub id: String,
    /// The job's tags; absent if it has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// When it happened.
    #[schema(format = DateTime)]
    pub at: String,
    /// For `attempt`: its number, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// For `attempt`: `complete`, `retry`, `bury`, `release`, or `lost` if the lease ran out without an outcome.
    /// For a pull job that is `retry` or `bury`, with the error `lease ran out`, unless a cancel was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ringback_core::store_types::AttemptOutcome>)]
    pub outcome: Option<String>,
    /// For `submitted`: when the job is due. For `attempt`: when it is due again, if it has to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub due_at: Option<String>,
    /// For `attempt`: the response's status, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// For a failed `attempt`: the class of the error, or the text that a consumer gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// For `attempt`: how long it took in milliseconds, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// For `dead`: why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl From<&Event> for JobEvent {
    fn from(event: &Event) -> Self {
        let (topic, id) = (event.key.topic.to_string(), event.key.id.to_string());
        let tenant = event.key.topic.tenant().map(|tenant| tenant.to_string());
        let (tags, at) = (event.tags.to_vec(), event.at.to_string());
        let common = Self { tenant, topic, id, tags, at, ..Self::default() };
        match &event.kind {
            EventKind::Submitted { due } => Self { due_at: Some(due.to_string()), ..common },
            EventKind::Attempt(ended) => common.with(ended),
            EventKind::Dead { reason } => Self { reason: Some(reason.to_string()), ..common },
            EventKind::Promoted | EventKind::Done | EventKind::Cancelled => common,
        }
    }
}

impl JobEvent {
    fn with(self, ended: &AttemptEnded) -> Self {
        Self {
            attempt: Some(ended.number),
            outcome: Some(ended.outcome.to_string()),
            due_at: ended.due.map(|due| due.to_string()),
            status: ended.status,
            error: ended.error.as_deref().map(str::to_owned),
            duration_ms: ended.duration.map(millis),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use ringback_core::clock::Timestamp;
    use ringback_core::job::{JobKey, Tags};
    use ringback_core::store_types::AttemptOutcome;

    fn json(kind: EventKind) -> String {
        let key = JobKey { topic: "t".parse().unwrap(), id: "i".parse().unwrap() };
        let event = Event { at: Timestamp::from_millis(1), key, tags: Tags::default(), kind };
        serde_json::to_string(&JobEvent::from(&event)).unwrap()
    }

    #[test]
    fn an_event_has_the_fields_of_its_kind_and_no_others() {
        let start = r#"{"topic":"t","id":"i","at":"1970-01-01T00:00:00.001Z""#;
        assert_eq!(json(EventKind::Done), format!("{start}}}"));
        let due = Timestamp::from_millis(2);
        let text = json(EventKind::Submitted { due });
        assert_eq!(text, format!(r#"{start},"due_at":"1970-01-01T00:00:00.002Z"}}"#));
        let ended = AttemptEnded {
            number: 2,
            outcome: AttemptOutcome::Bury,
            due: None,
            status: Some(503),
            error: None,
            duration: Some(Duration::from_millis(17)),
        };
        let text = json(EventKind::Attempt(ended));
        assert_eq!(text, format!(r#"{start},"attempt":2,"outcome":"bury","status":503,"duration_ms":17}}"#));
        assert_eq!(json(EventKind::Dead { reason: "gone".into() }), format!(r#"{start},"reason":"gone"}}"#));
    }
}
