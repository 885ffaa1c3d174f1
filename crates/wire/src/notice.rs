//! Notices: the job that says that another one died or is done, its body, and the fields `on_dead` and
//! `on_done`. The same end always makes the same notice, so submitting it twice is one submit.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use ringback_core::hex::Hex;
use ringback_core::job::{
    Body, Callback, ContentHash, Delivery, Due, IfExists, Job, JobId, JobKey, NewJob, Topic,
};
use ringback_core::store_types::{EndedJob, NOTICE_TOPICS, Success, is_notice_topic};
use ringback_core::topic_policy::Policy;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use utoipa::ToSchema;

use super::attempts::shown;
use super::field_parsers::entries::Entries;
use super::field_parsers::object::{Fields, Mistakes};
use super::field_parsers::values::url;
use super::job_answers::JobResponse;
use super::problem::Problem;

/// The `type` of a notice, by its topic.
const KINDS: [&str; 2] = ["job.dead", "job.done"];
const NO_NOTICE: &str = "given for a topic of notices, whose jobs cause no notice";

/// The body of a notice, in the form that Standard Webhooks recommends.
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
    /// `job.dead` or `job.done`.
    #[serde(rename = "type")]
    #[schema(value_type = NoticeKind)]
    kind: &'static str,
    /// When the job died or was done.
    #[schema(format = DateTime)]
    timestamp: String,
    /// The job.
    data: NoticeData,
}

/// What a notice says: that a job has died, or that it is done.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its schema is used")]
enum NoticeKind {
    #[schema(rename = "job.dead")]
    Dead,
    #[schema(rename = "job.done")]
    Done,
}

/// The job when it ended.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct NoticeData {
    /// The job.
    #[serde(flatten)]
    job: JobResponse,
    /// How its receiver answered. Only of a job that is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<ReceiverResponse>,
    /// Its context.
    #[schema(value_type = std::collections::BTreeMap<String, String>)]
    context: Entries,
}

/// The answer of a receiver that has accepted a job.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ReceiverResponse {
    /// Its status.
    status: u16,
    /// The first 1,024 bytes of its body, if they are text in UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
    /// The first 1,024 bytes of its body in base64, if they are not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer_base64: Option<String>,
}

impl From<&Success> for ReceiverResponse {
    fn from(success: &Success) -> Self {
        let (answer, answer_base64) = shown(&success.answer);
        Self { status: success.status, answer, answer_base64 }
    }
}

impl NoticeBody {
    /// The body for a job that has ended.
    pub fn new(ended: &EndedJob) -> Self {
        let response = ended.success.as_ref().map(ReceiverResponse::from);
        let context = ended.context.entries().into();
        let data = NoticeData { job: ended.job.clone().into(), response, context };
        Self { kind: KINDS[kind(ended)], timestamp: ended.at.to_string(), data }
    }
}

impl fmt::Display for NoticeBody {
    /// The JSON, always the same for the same end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

/// The index in [`NOTICE_TOPICS`] and [`KINDS`]: 0 for a dead job, 1 for one that is done.
fn kind(ended: &EndedJob) -> usize {
    usize::from(ended.success.is_some())
}

/// The job that publishes the end of a job, to the URL of the job itself or else of its topic's policy. `None` if
/// neither has one, and for a topic of notices.
pub fn notice_of(ended: &EndedJob, policy: Option<&Policy>) -> Option<NewJob> {
    if is_notice_topic(&ended.job.key.topic) {
        return None;
    }
    let of_topic = |policy: &Policy| {
        let url = if ended.success.is_some() { &policy.on_done } else { &policy.on_dead };
        url.clone()
    };
    let url = ended.url.clone().or_else(|| of_topic(policy?))?;
    let body = NoticeBody::new(ended).to_string();
    let content = ContentHash::of(Sha256::digest(format!("{url} {body}")).into());
    let body = Body { bytes: body.into(), content_type: None };
    let (context, trace) = (ended.context.clone(), ended.trace);
    // With its tags, so that it is found and erased with the job.
    let tags = ended.job.tags.clone();
    let delivery = Delivery { context, tags, trace, ..Delivery::new(url, body) };
    let topic = NOTICE_TOPICS[kind(ended)].parse::<Topic>().expect("it lies within the alphabet of topics");
    // A notice belongs to the tenant whose job has ended.
    let topic = topic.of_tenant(ended.job.key.topic.tenant().as_ref());
    let key = JobKey { topic, id: notice_id(ended) };
    let if_exists = IfExists::Refuse;
    Some(NewJob { key, due: Due::In(Duration::ZERO), delivery, content, if_exists, limits: None })
}

/// The topic of the job that a notice is about, from the notice's topic and body; `None` if the body is another one.
pub fn topic_of_notice(notice: &Topic, body: &[u8]) -> Option<Topic> {
    #[derive(Deserialize)]
    struct Notice<'a> {
        #[serde(borrow)]
        data: Data<'a>,
    }
    #[derive(Deserialize)]
    struct Data<'a> {
        topic: Cow<'a, str>,
    }
    let topic = serde_json::from_slice::<Notice<'_>>(body).ok()?.data.topic.parse::<Topic>().ok()?;
    Some(topic.of_tenant(notice.tenant().as_ref()))
}

/// The id of a notice: 128 bits that identify the end. The number of attempts only grows, so a job becomes
/// dead once with each number; an import may start again from a lower one, so the arrival counts too. The
/// time of the end does not: after a fail-over the same job may end a second time.
fn notice_id(ended: &EndedJob) -> JobId {
    let EndedJob { job: Job { key, created, attempts, .. }, arrived, .. } = ended;
    let kind = if ended.success.is_some() { "done " } else { "" };
    let digest = Sha256::digest(format!("{kind}{key} {created} {arrived} {attempts}"));
    Hex(&digest[..16]).to_string().parse().expect("digits lie within the alphabet of ids")
}

/// The URL of the notice (`on_dead` or `on_done`) of a submit; `None` if missing, or not allowed, which adds a mistake.
pub(super) fn notice_url(
    fields: &Fields<'_>,
    field: &str,
    topic: Option<&Topic>,
    mistakes: &mut Mistakes,
) -> Option<Callback> {
    fields.get(field)?;
    if topic.is_some_and(is_notice_topic) {
        mistakes.add(field, NO_NOTICE, other_topics());
        return None;
    }
    url(fields, field, mistakes)
}

fn other_topics() -> String {
    format!("any other topic than {}", NOTICE_TOPICS.join(" and "))
}

/// The problem of a submit to a topic of notices. A notice is signed as the topic of its job, so nobody else may say
/// what is in one.
pub fn submit_of_notice(topic: &Topic) -> Problem {
    let mut mistakes = Mistakes::default();
    let detail = format!("{} has notices alone, which are made where a job ends", topic.name());
    mistakes.add("topic", detail, "any other topic");
    mistakes.into_problem()
}

/// The problem of a policy for a topic of notices, if it has `on_dead` or `on_done`; `None` if it has neither.
pub fn policy_of_notices(policy: &Policy) -> Option<Problem> {
    let mut mistakes = Mistakes::default();
    for (field, url) in [("on_dead", &policy.on_dead), ("on_done", &policy.on_done)] {
        if url.is_some() {
            mistakes.add(field, NO_NOTICE, other_topics());
        }
    }
    (!mistakes.is_empty()).then(|| mistakes.into_problem())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Defaults, parse_job, parse_policy};
    use ringback_core::clock::Timestamp;
    use ringback_core::job::{Context, Tags, Trace};
    use ringback_core::outcome::LastAttempt;
    use ringback_core::state::State;

    fn letter(topic: &str, on_dead: Option<&str>) -> EndedJob {
        let job = Job {
            key: JobKey { topic: topic.parse().unwrap(), id: "order-1".parse().unwrap() },
            state: State::Dead,
            due: Timestamp::from_millis(1_000),
            created: Timestamp::from_millis(500),
            attempts: 3,
            failures: 2,
            last: Some(LastAttempt {
                at: Timestamp::from_millis(1_001),
                status: Some(503),
                error: None,
                duration: Duration::from_millis(17),
            }),
            reason: Some("exhausted".to_owned()),
            tags: Tags::default(),
        };
        let context = Context::parse(vec![("tenant".to_owned(), "a7".to_owned())]).unwrap();
        let on_dead = on_dead.map(|url| Callback::parse(url).unwrap());
        let trace = Some(Trace { trace_id: [1; 16], parent_id: [2; 8], flags: 1 });
        let [at, arrived] = [1_020, 500].map(Timestamp::from_millis);
        EndedJob { job, success: None, at, arrived, url: on_dead, context, trace }
    }

    #[test]
    fn a_notice_has_the_dead_job_and_the_reason() {
        let notice = notice_of(&letter("pay", Some("https://up.example/dead")), None).unwrap();
        assert_eq!(notice.key.topic.as_str(), "ringback.on-dead");
        assert_eq!(notice.delivery.callback.to_string(), "https://up.example/dead");
        assert_eq!(notice.delivery.context.entries(), [("tenant".to_owned(), "a7".to_owned())]);
        assert_eq!(
            (notice.delivery.trace.map(|trace| trace.trace_id), notice.delivery.on_dead),
            (Some([1; 16]), None)
        );
        let body = std::str::from_utf8(&notice.delivery.body.bytes).unwrap();
        assert_eq!(topic_of_notice(&notice.key.topic, body.as_bytes()).unwrap().as_str(), "pay");
        assert_eq!(topic_of_notice(&notice.key.topic, b"{}"), None);
        assert_eq!(
            body,
            r#"{"type":"job.dead","timestamp":"1970-01-01T00:00:01.020Z","data":{"topic":"pay","id":"order-1","state":"dead","due_at":"1970-01-01T00:00:01.000Z","created_at":"1970-01-01T00:00:00.500Z","attempts":3,"failures":2,"last":{"at":"1970-01-01T00:00:01.001Z","status":503,"duration_ms":17},"reason":"exhausted","context":{"tenant":"a7"}}}"#
        );
    }

    #[test]
    fn the_notice_of_a_success_has_the_answer_and_goes_to_on_done() {
        let mut done = letter("pay", Some("https://up.example/done"));
        (done.job.state, done.job.reason, done.job.last) = (State::Done, None, None);
        done.success = Some(Success { status: 201, answer: "thanks".into() });
        let notice = notice_of(&done, None).unwrap();
        assert_eq!(notice.key.topic.as_str(), "ringback.on-done");
        assert_eq!(notice.delivery.callback.to_string(), "https://up.example/done");
        let body = std::str::from_utf8(&notice.delivery.body.bytes).unwrap();
        assert_eq!(
            body,
            r#"{"type":"job.done","timestamp":"1970-01-01T00:00:01.020Z","data":{"topic":"pay","id":"order-1","state":"done","due_at":"1970-01-01T00:00:01.000Z","created_at":"1970-01-01T00:00:00.500Z","attempts":3,"failures":2,"response":{"status":201,"answer":"thanks"},"context":{"tenant":"a7"}}}"#
        );
        let policy =
            parse_policy(br#"{"on_dead":"http://t.example/dead","on_done":"http://t.example/done"}"#);
        let to =
            |ended: &EndedJob| notice_of(ended, policy.as_ref().ok()).unwrap().delivery.callback.to_string();
        let mut dead = letter("pay", None);
        done.url = None;
        assert_eq!((&*to(&done), &*to(&dead)), ("http://t.example/done", "http://t.example/dead"));
        assert_ne!(
            notice_of(&done, policy.as_ref().ok()).unwrap().key.id,
            notice_of(&dead, policy.as_ref().ok()).unwrap().key.id
        );
        dead.job.key.topic = NOTICE_TOPICS[1].parse().unwrap();
        assert_eq!(notice_of(&dead, policy.as_ref().ok()), None);
    }

    #[test]
    fn the_same_dead_letter_has_the_same_notice_and_another_one_another_key() {
        let one = letter("pay", Some("https://up.example/dead"));
        assert_eq!(notice_of(&one, None), notice_of(&one, None));
        let key = |letter: &EndedJob| notice_of(letter, None).unwrap().key;
        let (mut again, mut later) = (one.clone(), one.clone());
        again.at = Timestamp::from_millis(2_000);
        later.job.attempts = 4;
        let mut imported_again = one.clone();
        imported_again.arrived = Timestamp::from_millis(900);
        assert_eq!(key(&one), key(&again), "a death that happened again");
        assert_ne!(key(&one), key(&later));
        assert_ne!(key(&one), key(&imported_again), "it begins with the attempts of its import");
        assert_ne!(key(&one), key(&letter("bill", Some("https://up.example/dead"))));
    }

    #[test]
    fn the_job_s_own_url_counts_before_its_topic_s_and_notices_have_no_notices() {
        let policy = parse_policy(br#"{"on_dead":"http://topic.example/"}"#).unwrap();
        let to = |letter: EndedJob, policy| {
            notice_of(&letter, policy).map(|job| job.delivery.callback.to_string())
        };
        let own = || letter("pay", Some("http://own.example/"));
        assert_eq!(to(own(), Some(&policy)).as_deref(), Some("http://own.example/"));
        assert_eq!(to(letter("pay", None), Some(&policy)).as_deref(), Some("http://topic.example/"));
        assert_eq!(to(letter("pay", None), None), None);
        assert_eq!(to(letter(NOTICE_TOPICS[0], Some("http://own.example/")), Some(&policy)), None);
    }

    fn on_dead(job: &str) -> Result<Option<String>, (u16, String)> {
        let (make_id, make_token) = (&mut |_: &_| "i".parse().unwrap(), &mut || unreachable!());
        let defaults = Defaults { now: Timestamp::default(), make_id, make_token, trace: None, tenant: None };
        let job = parse_job(job.as_bytes(), defaults);
        let url = job.map(|job| job.delivery.on_dead.map(|url| url.to_string()));
        url.map_err(|problem| (problem.status, problem.errors[0].field.clone()))
    }

    #[test]
    fn jobs_of_both_kinds_may_have_a_notice_url() {
        for url in [r#""url":"http://h/","#, ""] {
            let job = format!(r#"{{"topic":"t",{url}"on_dead":"HTTP://H:80/dead"}}"#);
            assert_eq!(on_dead(&job), Ok(Some("http://h/dead".to_owned())));
        }
        assert_eq!(on_dead(r#"{"topic":"t","on_dead":null}"#), Ok(None));
    }

    #[test]
    fn the_notice_url_counts_as_content() {
        let content = |on_dead: &str| {
            let job = format!(r#"{{"topic":"t","id":"i","on_dead":{on_dead}}}"#);
            let (make_id, make_token) = (&mut |_: &_| unreachable!(), &mut || unreachable!());
            let defaults =
                Defaults { now: Timestamp::default(), make_id, make_token, trace: None, tenant: None };
            parse_job(job.as_bytes(), defaults).unwrap().content
        };
        assert_eq!(content(r#""http://h/""#), content(r#""http://h/""#));
        assert_ne!(content(r#""http://h/""#), content(r#""http://h/other""#));
        assert_ne!(content(r#""http://h/""#), content("null"));
    }

    #[test]
    fn the_notice_url_is_refused_by_the_rules_of_a_url_and_for_a_notice() {
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
