//! Events, as the API tells them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::store::events::{Ended, Event, Happened};

/// What happened to a job. Its kind is the name of the event: `submitted`, `promoted`, `attempt`, `done`,
/// `dead` or `cancelled`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({"topic": "pay.notify", "id": "order-1", "at": "2026-11-20T09:30:15.017Z",
    "attempt": 1, "outcome": "retry", "due_at": "2026-11-20T09:30:30.017Z", "status": 503, "duration_ms": 17}))]
pub struct EventAnswer {
    /// The job's topic.
    pub topic: String,
    /// The job's id.
    pub id: String,
    /// When it happened.
    pub at: String,
    /// Of `attempt`: which hand-over it was, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Of `attempt`: `complete`, `retry`, `bury`, `release`, or `lost` where nobody said in time what came of it;
    /// of a job for pull that is `retry` or `bury`, with the error `lease ran out`, unless it was to be cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// Of `submitted`: when the job is due. Of `attempt`: when it is due again, where it is to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<String>,
    /// Of `attempt`, where it is known: the answer's status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Of an `attempt` that failed: the class of the error, or what a consumer said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Of `attempt`, where it is known: how long it took, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Of `dead`: why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl From<&Event> for EventAnswer {
    fn from(event: &Event) -> Self {
        let (topic, id) = (event.key.topic.to_string(), event.key.id.to_string());
        let told = Self { topic, id, at: event.at.to_string(), ..Self::default() };
        match &event.what {
            Happened::Submitted { due } => Self { due_at: Some(due.to_string()), ..told },
            Happened::Attempt(ended) => told.with(ended),
            Happened::Dead { reason } => Self { reason: Some(reason.to_string()), ..told },
            Happened::Promoted | Happened::Done | Happened::Cancelled => told,
        }
    }
}

impl EventAnswer {
    fn with(self, ended: &Ended) -> Self {
        let duration_ms = ended.duration.map(|took| u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
        Self {
            attempt: Some(ended.number),
            outcome: Some(ended.outcome.name().to_owned()),
            due_at: ended.due.map(|due| due.to_string()),
            status: ended.status,
            error: ended.error.as_deref().map(str::to_owned),
            duration_ms,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock::Timestamp;
    use crate::job::JobKey;
    use crate::store::events::AttemptOutcome;

    fn json(what: Happened) -> String {
        let key = JobKey { topic: "t".parse().unwrap(), id: "i".parse().unwrap() };
        let event = Event { at: Timestamp::from_millis(1), key, what };
        serde_json::to_string(&EventAnswer::from(&event)).unwrap()
    }

    #[test]
    fn an_event_says_what_belongs_to_its_kind_and_nothing_else() {
        let start = r#"{"topic":"t","id":"i","at":"1970-01-01T00:00:00.001Z""#;
        assert_eq!(json(Happened::Done), format!("{start}}}"));
        let due = Timestamp::from_millis(2);
        let told = json(Happened::Submitted { due });
        assert_eq!(told, format!(r#"{start},"due_at":"1970-01-01T00:00:00.002Z"}}"#));
        let ended = Ended {
            number: 2,
            outcome: AttemptOutcome::Bury,
            due: None,
            status: Some(503),
            error: None,
            duration: Some(Duration::from_millis(17)),
        };
        let told = json(Happened::Attempt(ended));
        assert_eq!(told, format!(r#"{start},"attempt":2,"outcome":"bury","status":503,"duration_ms":17}}"#));
        assert_eq!(json(Happened::Dead { reason: "gone".into() }), format!(r#"{start},"reason":"gone"}}"#));
    }
}
