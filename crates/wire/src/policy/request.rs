//! The declarations of a policy and of a patch of one, with the kinds of their own fields.

use std::collections::BTreeSet;

use ringback_core::credential::CredentialName;
use ringback_core::flow::Limits;
use ringback_core::job::Headers;
use ringback_core::store_types::{EndedState, EndedStates};
use ringback_core::topic_policy::{
    ArchivePolicy, Logging, MAX_BURY_ON, MAX_EXPECTED, MAX_HEADERS_TO, MAX_SECRETS, StoredSecret,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use super::headers_to::headers_to;
use super::sealed::sealed_headers;
use super::secrets::{SealedSecret, secrets};
use crate::declare::request;
use crate::field_parsers::object::read;
use crate::kinds::{Flag, Given, Part, Text, kinds, list, valid, worded};
use crate::limits::FlowLimits;
use crate::order::{OrderOnDeath, OrderedBy};
use crate::schema::{
    CallbackUrl, CredentialNameText, ExpectedBody, FinalStatus, HeadersPatch, HeadersText, Origin,
    RetryPolicy, SealedHeaders, Timeout, Ttr,
};

const CREDENTIALS: &str = "the name of a credential, [A-Za-z0-9._-]{1,64}, neither . nor ..";
const EXPECTED: &str = "a string of at most 1024 bytes, without white space at its ends";
const STATUSES: &str = "a list of 1 to 32 statuses, 300 to 599, each once, such as [400, 422]";
const LIMITS: &str = "an object with rate, in_flight or both, such as {\"rate\":\"100/s\",\"burst\":20,\"in_flight\":10}; for no limits, leave it out or set it to null";
const ORDER: &str = "\"key\"; for no order, leave it out or set it to null";
const ORDER_ON_DEAD: &str = "\"next\" or \"hold\"";
const LOGGED: &str = "\"failed\", \"all\" or \"off\"";
const ARCHIVE: &str = "an object with states (a list) and bodies (true or false); each may be left out";
const STATES: &str = "a list of done, dead, expired, cancelled and purged, each once; an empty list for none";

request! {
    /// Defaults for the jobs of a topic that do not set these fields themselves. All are optional.
    #[example {
        "retry": {"delays": ["15s", "3m", "10m"], "max": -1}, "timeout": "5s",
        "headers": {"x-tenant": "a7"}, "expect_body": "success",
        "on_dead": "https://shop.example/dead",
    }]
    pub struct PolicyRequest(open) {
        /// When failed jobs are retried.
        retry: RetryPolicy;
        /// The total deadline of one attempt, 100 ms to 10 min.
        timeout: Timeout;
        /// The lease of a pull job, 100 ms to 12 h.
        ttr: Ttr;
        /// The callback URL of jobs that are submitted later with neither `url` nor `ttr`.
        url: CallbackUrl;
        /// Headers that are added unless the job has one of the same name. A secret header whose value is
        /// `[masked by ringback]`, as answers show it, keeps its stored value.
        headers: HeadersText, or Headers::default();
        /// The origins (scheme, host and port) whose callbacks get these headers, or `*` for all. By default that
        /// of `url`; without `url` all, which is refused if one of the headers is secret.
        headers_to: HeadersTo, or None;
        /// The credential that callbacks carry to the origins that it names, by its name. There has to be one.
        credentials: Text<CredentialNameText, CredentialName> [CREDENTIALS];
        /// The body that a 2xx response of the receiver must have. With any other body the attempt fails.
        expect_body: ExpectedBody [EXPECTED];
        /// The statuses of answers, 300 to 599, after which a job is dead at once, with the reason `rejected`. 410 is
        /// always one, with the reason `gone`.
        bury_on: FinalStatuses [STATUSES];
        /// Limits of the topic's callbacks to all destinations together, over all notifiers. Limits of a destination
        /// hold too. Pull jobs are not limited.
        limits: FlowLimits [LIMITS], or Limits::default();
        /// `key` delivers the jobs of one key in order, one at a time. The key is the part of the id before the first `~`;
        /// firings of schedules have none.
        order: OrderedBy [ORDER];
        /// What the death of a job means to those behind it: `next`, the default, delivers the next one; with `hold` they
        /// wait until the dead job is revived or purged, or the key is unblocked. Only together with `order`, and
        /// removed with it.
        order_on_dead: OrderOnDeath [ORDER_ON_DEAD];
        /// Which attempts are logged.
        attempts: Text<LoggedAttempts, Logging> [LOGGED];
        /// The URL for dead-letter notices of jobs without an `on_dead` of their own, once the policy is
        /// in effect. Not for the topics `ringback.on-dead` and `ringback.on-done`.
        on_dead: CallbackUrl;
        /// The URL for notices of the success of jobs without an `on_done` of their own. Not for the topics
        /// `ringback.on-dead` and `ringback.on-done`.
        on_done: CallbackUrl;
        /// Whether `/metrics` of the carriers shows the jobs of this topic by itself. At most 100 topics can.
        metrics: Flag, or false;
        /// Which ended jobs of the topic go to the archive, if there is one; by default what the archive is set to.
        archive: Part<TopicArchive> [ARCHIVE];
        /// The values of secret headers, sealed, as an export of topics has them where there is a master key: for a restore.
        /// `headers` have `[masked by ringback]` in their place. Answers never show it.
        sealed_headers: SealedHeaders;
        /// The secrets that sign its callbacks, sealed, as an export of topics has them: for a restore. They replace those
        /// of the topic. A policy without this field keeps them. Answers never show it.
        secrets: SealedSecrets, or Vec::new();
    }
}

request! {
    /// The fields of a policy to change. A field that is null is removed, and one that is left out stays.
    #[example {"timeout": "5s", "expect_body": null}]
    pub struct PolicyPatchRequest of PolicyRequest without ["sealed_headers", "secrets"] {
        /// When failed jobs are retried, as a whole.
        retry: RetryPolicy;
        /// Headers to set, each beside those that stay, and those to remove, which are null.
        headers: Given<HeadersPatch>;
        /// The origins whose callbacks get the headers. Stored values of secret headers go to no new one.
        headers_to: HeadersTo;
        /// Limits of the topic's callbacks, as a whole.
        limits: FlowLimits;
        /// Which ended jobs of the topic go to the archive; each of its two fields by itself.
        archive: Part<TopicArchive>;
    }
}

request! {
    /// Which ended jobs go to the archive.
    pub struct TopicArchive {
        /// The ended jobs that do; an empty list for none.
        states: ArchivedStates;
        /// Whether with the bodies of the jobs.
        bodies: Bodies;
    }
}

impl From<TopicArchive> for ArchivePolicy {
    fn from(TopicArchive { states, bodies }: TopicArchive) -> Self {
        Self { states, bodies }
    }
}

/// The origins that get the headers of a policy.
pub struct HeadersTo;
/// Statuses of answers after which a job is dead.
pub struct FinalStatuses;
/// The sealed secrets of a topic.
pub struct SealedSecrets;
/// The ended jobs that go to the archive.
pub struct ArchivedStates;
/// Whether the bodies of jobs go to the archive.
pub struct Bodies;

kinds! {
    HeadersTo: Option<Vec<String>> = |fields, _, _, mistakes| headers_to(fields, mistakes),
        as list::<Origin>().max_items(Some(MAX_HEADERS_TO)), of Origin;
    // Responses are compared without white space at their ends, so a text with such white space could never match.
    ExpectedBody: String = valid(|raw| {
        read::<String>(raw).filter(|text| text.len() <= MAX_EXPECTED && text.trim_ascii() == text)
    });
    FinalStatuses: Vec<u16> = valid(final_statuses),
        as list::<FinalStatus>().min_items(Some(1)).max_items(Some(MAX_BURY_ON)).unique_items(true), of FinalStatus;
    SealedHeaders: Box<str> = |fields, _, _, mistakes| sealed_headers(fields, mistakes);
    SealedSecrets: Vec<StoredSecret> = |fields, _, _, mistakes| secrets(fields, mistakes),
        as list::<SealedSecret>().max_items(Some(MAX_SECRETS)), of SealedSecret;
    ArchivedStates: EndedStates = worded("is not a list of states", STATES, archived_states),
        as list::<ArchivedState>().max_items(Some(5)).unique_items(true), of ArchivedState;
    Bodies: bool = worded("is neither", "true or false", read), as ObjectBuilder::new().schema_type(Type::Boolean);
}

fn final_statuses(raw: &RawValue) -> Option<Vec<u16>> {
    let mut statuses = read::<Vec<u16>>(raw).filter(|all| (1..=MAX_BURY_ON).contains(&all.len()))?;
    let count = statuses.len();
    statuses.sort_unstable();
    statuses.dedup();
    let are_errors = statuses.iter().all(|status| (300..=599).contains(status));
    (are_errors && statuses.len() == count).then_some(statuses)
}

fn archived_states(raw: &RawValue) -> Option<EndedStates> {
    let names = read::<Vec<String>>(raw)?;
    let states = names.iter().map(|name| name.parse::<EndedState>().ok()).collect::<Option<BTreeSet<_>>>()?;
    (states.len() == names.len()).then(|| EndedStates::of(states))
}

/// How a job ends.
#[derive(Deserialize, Serialize, PartialEq, Eq, Hash, ToSchema)]
#[schema(rename_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum ArchivedState {
    Done,
    Dead,
    Expired,
    Cancelled,
    Purged,
}

/// Which attempts are logged: failed ones and the success of a job that needed more than one attempt, all,
/// or none.
#[derive(Deserialize, Serialize, ToSchema)]
#[schema(rename_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum LoggedAttempts {
    Failed,
    All,
    Off,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_policy;

    #[test]
    fn a_policy_says_which_ended_jobs_are_archived_and_whether_with_bodies() {
        let of = |json: &str| parse_policy(json.as_bytes()).map(|policy| policy.archive);
        assert_eq!(of("{}").unwrap(), ArchivePolicy::default());
        let both = of(r#"{"archive":{"states":["dead","purged"],"bodies":false}}"#).unwrap();
        let ends = EndedStates::of([EndedState::Dead, EndedState::Purged]);
        assert_eq!(both, ArchivePolicy { states: Some(ends), bodies: Some(false) });
        assert_eq!(of(r#"{"archive":{"states":[]}}"#).unwrap().states, Some(EndedStates::default()));
        for (wrong, field) in [
            (r#"{"archive":["dead"]}"#, "archive"),
            (r#"{"archive":{"states":["lost"]}}"#, "archive.states"),
            (r#"{"archive":{"states":["dead","dead"]}}"#, "archive.states"),
            (r#"{"archive":{"states":"dead"}}"#, "archive.states"),
            (r#"{"archive":{"bodies":1}}"#, "archive.bodies"),
            (r#"{"archive":{"body":true}}"#, "archive.body"),
        ] {
            let problem = of(wrong).unwrap_err();
            let fields: Vec<_> = problem.errors.iter().map(|error| error.field.as_str()).collect();
            assert_eq!(fields, [field], "{wrong}");
        }
    }
}
