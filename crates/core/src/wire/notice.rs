//! What a notice of a death says, and the field that asks for one.

use std::fmt;

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use super::fields::{Fields, Mistakes};
use super::{JobAnswer, Problem, policy};
use crate::job::{Callback, Context, Topic};
use crate::notice::{Death, NOTICES, is_of_notices};

/// What kind of notice it is.
const JOB_DEAD: &str = "job.dead";
const TELLS_NOBODY: &str = "given for the topic of notices, whose deaths are told to nobody";

/// The body of a notice, in the shape that Standard Webhooks recommends.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "type": "job.dead", "timestamp": "2026-11-20T11:13:51.938Z",
    "data": {
        "topic": "pay.notify", "id": "order-1", "state": "dead",
        "due_at": "2026-11-20T11:13:51.929Z", "created_at": "2026-11-20T11:13:48.811Z",
        "attempts": 3, "failures": 3,
        "last": {"at": "2026-11-20T11:13:51.937Z", "status": 503, "duration_ms": 1},
        "reason": "exhausted", "context": {"tenant": "a7"},
    },
}))]
pub struct NoticeBody {
    /// `job.dead`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// When the job died.
    timestamp: String,
    /// The job.
    data: NoticeData,
}

/// A job as it was when it died.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct NoticeData {
    /// As it is shown.
    #[serde(flatten)]
    job: JobAnswer,
    /// Its context.
    #[serde(serialize_with = "entries")]
    #[schema(value_type = std::collections::BTreeMap<String, String>)]
    context: Context,
}

fn entries<S: Serializer>(context: &Context, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(context.entries().len()))?;
    for (key, value) in context.entries() {
        map.serialize_entry(key, value)?;
    }
    map.end()
}

impl NoticeBody {
    /// What is told of a death.
    pub fn new(death: &Death) -> Self {
        let data = NoticeData { job: death.job.clone().into(), context: death.context.clone() };
        Self { kind: JOB_DEAD, timestamp: death.died.to_string(), data }
    }
}

impl fmt::Display for NoticeBody {
    /// The JSON, always the same of the same death.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

/// Where the death of a submitted job is told.
pub(super) fn on_dead(
    fields: &Fields<'_>,
    topic: Option<&Topic>,
    mistakes: &mut Mistakes,
) -> Option<Callback> {
    let raw = fields.get("on_dead")?;
    if topic.is_some_and(is_of_notices) {
        mistakes.add("on_dead", TELLS_NOBODY, format!("any other topic than {NOTICES}"));
        return None;
    }
    policy::url("on_dead", raw, mistakes)
}

/// The problem of a policy that would tell the deaths of notices.
pub fn on_dead_of_notices() -> Problem {
    let mut mistakes = Mistakes::default();
    mistakes.add("on_dead", TELLS_NOBODY, format!("any other topic than {NOTICES}"));
    Problem::fields(mistakes.into_inner())
}

#[cfg(test)]
mod tests {
    use crate::clock::Timestamp;
    use crate::wire::{Defaults, parse_job};

    fn on_dead(job: &str) -> Result<Option<String>, (u16, String)> {
        let make_id = &mut || "i".parse().unwrap();
        let job = parse_job(job.as_bytes(), Defaults { now: Timestamp::default(), make_id, trace: None });
        let url = job.map(|job| job.delivery.on_dead.map(|url| url.to_string()));
        url.map_err(|problem| (problem.status, problem.errors[0].field.clone()))
    }

    #[test]
    fn jobs_of_both_kinds_may_say_where_their_death_is_told() {
        for url in [r#""url":"http://h/","#, ""] {
            let job = format!(r#"{{"topic":"t",{url}"on_dead":"HTTP://H:80/dead"}}"#);
            assert_eq!(on_dead(&job), Ok(Some("http://h/dead".to_owned())));
        }
        assert_eq!(on_dead(r#"{"topic":"t","on_dead":null}"#), Ok(None));
    }

    #[test]
    fn it_counts_as_content() {
        let content = |on_dead: &str| {
            let job = format!(r#"{{"topic":"t","id":"i","on_dead":{on_dead}}}"#);
            let make_id = &mut || unreachable!("it has an id");
            let defaults = Defaults { now: Timestamp::default(), make_id, trace: None };
            parse_job(job.as_bytes(), defaults).unwrap().content
        };
        assert_eq!(content(r#""http://h/""#), content(r#""http://h/""#));
        assert_ne!(content(r#""http://h/""#), content(r#""http://h/other""#));
        assert_ne!(content(r#""http://h/""#), content("null"));
    }

    #[test]
    fn it_is_refused_by_the_rules_of_a_url_and_for_a_notice() {
        let long = format!("http://h/{}", "x".repeat(2040));
        for url in ["", "/dead", "ftp://h/", "http://u:p@h/", "http://h/#f", &long] {
            let job = format!(r#"{{"topic":"t","on_dead":"{url}"}}"#);
            assert_eq!(on_dead(&job), Err((422, "on_dead".to_owned())), "{url}");
        }
        for job in [r#"{"topic":"t","on_dead":5}"#, r#"{"topic":"ringback.on-dead","on_dead":"http://h/"}"#] {
            assert_eq!(on_dead(job), Err((422, "on_dead".to_owned())), "{job}");
        }
    }
}
