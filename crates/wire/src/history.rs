//! Requests and answers about the history, the ended jobs in the archive: filters, pages, replays and erasures.

use std::net::Ipv6Addr;

use ringback_core::job::{JobId, Tags, Topic};
use ringback_core::store_types::EndedState;
use serde::{Deserialize, Serialize};
use strum::VariantArray as _;
use utoipa::ToSchema;

use super::attempts::LoggedAttempt;
use super::declare::{Request as _, request};
use super::field_parsers::object::{Mistakes, open_or_empty, read};
use super::field_parsers::values::{MAX_REPLAY_NAME, REASON};
use super::job_answers::LastAttemptDetails;
use super::kinds::{Part, Text, Whole, kinds, valid};
use super::problem::Problem;
use super::request_details::RequestDetails;
use super::schema::{
    DeadReason, HistoryState, HostText, JobIdText, ReplayCursorText, ReplayName, TagText, Time, TopicName,
};

/// The most jobs that a replay submits in a second.
pub const MAX_REPLAY_RATE: u32 = 1_000;
/// The rate of a replay without one.
pub const DEFAULT_REPLAY_RATE: u32 = 100;
/// The most refusals in the answer to a replay.
pub const MAX_REFUSALS: usize = 20;

/// The form of a state of an ended job, for error messages.
pub const END_STATES: &str =
    "done, dead, cancelled or purged; a job that has expired is dead with that reason";
/// The form of a host, for error messages.
pub const HOST: &str =
    "the host of URLs, without scheme and port, such as merchant.example; an IPv6 address without brackets";
const RATE: &str = "1 to 1000 jobs a second, a whole number";
const IDS: &str = "new (the default) or same";
const NAME: &str = "1 to 64 of A-Z a-z 0-9 . _ -";
const FILTER: &str = "an object with topic, id, tag, state, reason, host, finished_after and finished_before, all of which may be left out";

request! {
    /// Which jobs of the history to submit again, and how.
    #[example {
        "filter": {"topic": "pay.notify", "state": "dead", "finished_after": "2026-11-20T00:00:00Z"}, "rate": 50
    }]
    pub struct ReplayRequest {
        /// Which ended jobs to submit again.
        filter: Part<HistoryFilter> [FILTER], required HistoryFilter::default();
        /// How many jobs a second; 100 by default.
        rate: Whole<u32, 1, { MAX_REPLAY_RATE as u64 }> [RATE], or DEFAULT_REPLAY_RATE;
        /// `new`, the default: each job gets a new id, computed from the old job and `name`. `same`: each keeps its id.
        ids: ReplayIds [IDS], or ReplayIds::New;
        /// The name of the replay. The same name makes the same new ids, so a replay can be repeated.
        name: ReplayName [NAME], or String::new();
        /// `next` of the previous answer; absent in the first call.
        cursor: Text<ReplayCursorText, String> ["`next` of the previous answer"];
    }
}

request! {
    /// Which ended jobs of the history; all if it is empty.
    #[derive(Default)]
    pub struct HistoryFilter {
        /// Only ended jobs of this topic.
        topic: Text<TopicName, Topic> [Topic::ALLOWED];
        /// Only ended jobs with this id.
        id: Text<JobIdText, JobId> [JobId::ALLOWED];
        /// Only ended jobs with this tag.
        tag: TagText [Tags::ALLOWED_TAG];
        /// Only ended jobs in this state.
        state: HistoryState [END_STATES];
        /// Only ended jobs with this reason.
        reason: DeadReason [REASON];
        /// Only ended jobs with a URL of this host.
        host: HostText [HOST];
        /// Only ended jobs at this time or later.
        finished_after: Time;
        /// Only ended jobs before this time.
        finished_before: Time;
    }
}

kinds! {
    ReplayIds: Self = valid(read);
    ReplayName: String = valid(|raw| read::<String>(raw).filter(|text| is_replay_name(text)));
    TagText: String = valid(|raw| read::<String>(raw).filter(|text| Tags::is_tag(text)));
    HistoryState: &'static str = valid(|raw| end_state(&read::<String>(raw)?));
    HostText: String = valid(|raw| history_host(&read::<String>(raw)?));
}

/// The state of ended jobs with this name; `None` for another text. Expired jobs are `dead`.
pub fn end_state(name: &str) -> Option<&'static str> {
    EndedState::VARIANTS.iter().copied().map(EndedState::state).find(|state| *state == name)
}

/// A host as the history has it: a name in lower case, or an IPv6 address without brackets; `None` for another text.
pub fn history_host(text: &str) -> Option<String> {
    if let Ok(address) = text.parse::<Ipv6Addr>() {
        return Some(address.to_string());
    }
    let is_of_name = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
    ((1..=253).contains(&text.len()) && text.bytes().all(is_of_name)).then(|| text.to_ascii_lowercase())
}

fn is_replay_name(text: &str) -> bool {
    let is_inside = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    (1..=MAX_REPLAY_NAME).contains(&text.len()) && text.bytes().all(is_inside)
}

/// Under which ids a replay submits jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReplayIds {
    // From the old ones and the name of the replay.
    New,
    Same,
}

impl ReplayRequest {
    /// Parses a body; an empty one counts as `{}`.
    ///
    /// # Errors
    /// A 400 problem if it is not a JSON object, 413 if it is too long, 422 with all wrong fields.
    pub fn parse(json: &[u8]) -> Result<Self, Problem> {
        let (fields, mut mistakes) = (open_or_empty(json)?, Mistakes::default());
        fields.check_names("", Self::NAMES, &mut mistakes);
        let request = Self::values(&fields, &mut mistakes);
        if request.ids == ReplayIds::Same && !request.name.is_empty() {
            mistakes.add("name", "given for a replay under the same ids", "only with new ids");
        }
        mistakes.or(request)
    }
}

/// An end of a job, as the archive has kept it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({"topic": "pay.notify", "id": "order-1", "state": "dead", "reason": "exhausted",
    "finished_at": "2026-11-20T10:30:15.017Z", "created_at": "2026-11-20T09:30:15.001Z",
    "first_due_at": "2026-11-20T09:30:15.001Z", "due_at": "2026-11-20T10:30:15.001Z", "attempts": 4, "failures": 4,
    "last": {"at": "2026-11-20T10:30:15.009Z", "status": 503, "duration_ms": 8},
    "url": "https://merchant.example/notify", "tags": ["customer:42"], "attempts_complete": true}))]
pub struct EndedJobDetails {
    /// The job's topic.
    pub topic: String,
    /// The job's id.
    pub id: String,
    /// `done`, `dead`, `cancelled` or `purged`.
    pub state: String,
    /// Why it was dead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it ended.
    #[schema(format = DateTime)]
    pub finished_at: String,
    /// When it was accepted. A job with the id of one that has ended is another one, with another time.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When it was first due.
    #[schema(format = DateTime)]
    pub first_due_at: String,
    /// When it was last due.
    #[schema(format = DateTime)]
    pub due_at: String,
    /// How often it was reserved by then.
    pub attempts: u32,
    /// How many attempts had failed since it was accepted or revived.
    pub failures: u32,
    /// The last failed attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<LastAttemptDetails>,
    /// The URL; absent for a pull job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Its tags; absent if it has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Whether all its attempts were logged.
    pub attempts_complete: bool,
    /// With `include=attempts`: those that were logged, the newest last; at most 20.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<Vec<LoggedAttempt>>,
    /// With `include=request`: what was submitted. Absent if it could not be read when the job ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Box<RequestDetails>>,
    /// With `include=request`: whether the archive has the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_body: Option<bool>,
}

/// A page of the history.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct HistoryResponse {
    /// The ended jobs, the newest first.
    pub items: Vec<EndedJobDetails>,
    /// The cursor of the next page; null on the last page. Opaque.
    pub next: Option<String>,
}

/// The answer to a replay, which has submitted jobs for about a second.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReplayResponse {
    /// How many jobs this call has submitted.
    pub submitted: u64,
    /// How many it left alone, because a job with this id is there already.
    pub existing: u64,
    /// How many it could not submit.
    pub refused: u64,
    /// Why, for the first 20 of them.
    pub refusals: Vec<ReplayRefusal>,
    /// The cursor of the next call; null when all were submitted. Opaque.
    pub next: Option<String>,
}

/// Why a job was not submitted again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReplayRefusal {
    /// The job's topic.
    pub topic: String,
    /// The job's id.
    pub id: String,
    /// When it ended.
    #[schema(format = DateTime)]
    pub finished_at: String,
    /// Why.
    pub detail: String,
}

/// The answer to an erasure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErasureResponse {
    /// How many ended jobs this call has erased.
    pub erased: u64,
    /// Whether none is left. If not, call again.
    pub complete: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_has_a_filter_and_defaults_for_the_rest() {
        let ask = ReplayRequest::parse(br#"{"filter":{}}"#).unwrap();
        let expected = ReplayRequest {
            filter: HistoryFilter::default(),
            rate: DEFAULT_REPLAY_RATE,
            ids: ReplayIds::New,
            name: String::new(),
            cursor: None,
        };
        assert_eq!(ask, expected);
        let ask = ReplayRequest::parse(
            br#"{"filter":{"topic":"t","id":"i","tag":"a:1","state":"dead","reason":"gone","host":"M.example",
                "finished_after":"2026-01-01T00:00:00Z","finished_before":"2026-01-02T00:00:00Z"},
                "rate":7,"ids":"new","name":"again","cursor":"x"}"#,
        );
        let ReplayRequest { filter, rate, ids, name, cursor } = ask.unwrap();
        assert_eq!((filter.state, filter.host.as_deref()), (Some("dead"), Some("m.example")));
        assert!(
            filter.topic.is_some() && filter.id.is_some() && filter.tag.is_some() && filter.reason.is_some()
        );
        assert!(filter.finished_after < filter.finished_before);
        assert_eq!((rate, ids, name.as_str(), cursor.as_deref()), (7, ReplayIds::New, "again", Some("x")));
    }

    #[test]
    fn all_wrong_fields_of_a_replay_are_reported() {
        let wrong = br#"{"filter":{"state":"expired","tag":"a b","host":"h:80","until":1},"rate":0,"ids":"old","name":""}"#;
        let problem = ReplayRequest::parse(wrong).unwrap_err();
        let fields: Vec<_> = problem.errors.iter().map(|error| error.field.as_str()).collect();
        let expected = ["filter.until", "filter.tag", "filter.state", "filter.host", "rate", "ids", "name"];
        assert_eq!(fields, expected);
        assert_eq!(ReplayRequest::parse(b"").unwrap_err().errors[0].field, "filter");
        let named = ReplayRequest::parse(br#"{"filter":{},"ids":"same","name":"x"}"#).unwrap_err();
        assert_eq!(named.errors[0].field, "name");
    }

    #[test]
    fn hosts_are_names_and_addresses_without_ports() {
        assert_eq!(history_host("A.example").as_deref(), Some("a.example"));
        assert_eq!(history_host("0:0::1").as_deref(), Some("::1"));
        for other in ["", "a:80", "[::1]", "http://a", "a/b"] {
            assert_eq!(history_host(other), None, "{other}");
        }
    }
}
