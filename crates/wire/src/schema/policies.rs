//! OpenAPI schemas of topic policies and the secrets of topics.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::callback::{FinalStatus, RetryPolicy};
use super::values::{
    CallbackUrl, CredentialNameText, ExpectedBody, HeadersPatch, HeadersText, Origin, SealedHeaders,
    SealedValue, SecretIdText, Time, Timeout, Ttr,
};

/// Defaults for the jobs of a topic that do not set these fields themselves. All are optional.
#[derive(Deserialize, Serialize, ToSchema)]
#[schema(example = json!({
    "retry": {"delays": ["15s", "3m", "10m"], "max": -1}, "timeout": "5s",
    "headers": {"x-tenant": "a7"}, "expect_body": "success",
    "on_dead": "https://shop.example/dead",
}))]
#[serde(deny_unknown_fields)]
pub struct PolicyRequest {
    /// When failed jobs are retried.
    retry: Option<RetryPolicy>,
    /// The total deadline of one attempt.
    timeout: Option<Timeout>,
    /// The lease of a pull job.
    ttr: Option<Ttr>,
    /// The callback URL of jobs that are submitted later with neither `url` nor `ttr`.
    url: Option<CallbackUrl>,
    /// Headers that are added unless the job has one of the same name. A secret one whose value is
    /// `[masked by ringback]`, as answers show it, keeps its stored value.
    headers: Option<HeadersText>,
    /// The origins (scheme, host and port) whose callbacks get these headers, or `["*"]` for all. By default that
    /// of `url`; without `url` all, which is refused if one of the headers is a secret one.
    #[schema(max_items = 32)]
    headers_to: Option<Vec<Origin>>,
    /// The credential that callbacks carry to the origins that it names, by its name. There has to be one.
    credentials: Option<CredentialNameText>,
    /// The body that a 2xx response of the receiver must have. With any other body the attempt fails.
    expect_body: Option<ExpectedBody>,
    /// The statuses of answers after which a job is dead at once, with the reason `rejected`. 410 is always one, with
    /// the reason `gone`.
    #[schema(min_items = 1, max_items = 32)]
    bury_on: Option<HashSet<FinalStatus>>,
    /// Which attempts are logged.
    attempts: Option<LoggedAttempts>,
    /// The URL for dead-letter notices of jobs without an `on_dead` of their own, once the policy is
    /// in effect. Not for the topics `ringback.on-dead` and `ringback.on-done`.
    on_dead: Option<CallbackUrl>,
    /// The URL for notices of the success of jobs without an `on_done` of their own. Not for the topics
    /// `ringback.on-dead` and `ringback.on-done`.
    on_done: Option<CallbackUrl>,
    /// Whether `/metrics` of the carriers shows the jobs of this topic by itself. At most 100 topics can.
    metrics: Option<bool>,
    /// Which ended jobs of the topic go to the archive, if there is one; by default what the archive is set to.
    archive: Option<TopicArchive>,
    /// The values of secret headers, sealed, as an export of topics has them where there is a master key: for a restore.
    /// `headers` have `[masked by ringback]` in their place. Answers never show it.
    sealed_headers: Option<SealedHeaders>,
    /// The secrets that sign its callbacks, sealed, as an export of topics has them: for a restore. They replace those
    /// of the topic. A policy without this field keeps them. Answers never show it.
    #[schema(max_items = 8)]
    secrets: Option<Vec<SealedSecret>>,
}

/// The fields of a policy to change. A field that is null is removed, and one that is left out stays.
#[derive(Deserialize, Serialize, ToSchema)]
#[schema(example = json!({"timeout": "5s", "expect_body": null}))]
#[serde(deny_unknown_fields)]
pub struct PolicyPatchRequest {
    /// When failed jobs are retried, as a whole.
    retry: Option<RetryPolicy>,
    /// The total deadline of one attempt.
    timeout: Option<Timeout>,
    /// The lease of a pull job.
    ttr: Option<Ttr>,
    /// The callback URL of jobs that are submitted later with neither `url` nor `ttr`.
    url: Option<CallbackUrl>,
    /// Headers to set, each beside those that stay, and those to remove, which are null.
    headers: Option<HeadersPatch>,
    /// The origins whose callbacks get the headers. Stored values of secret headers go to no new one.
    #[schema(max_items = 32)]
    headers_to: Option<Vec<Origin>>,
    /// The credential that callbacks carry to the origins that it names, by its name. There has to be one.
    credentials: Option<CredentialNameText>,
    /// The body that a 2xx response of the receiver must have.
    expect_body: Option<ExpectedBody>,
    /// The statuses of answers after which a job is dead at once.
    #[schema(min_items = 1, max_items = 32)]
    bury_on: Option<HashSet<FinalStatus>>,
    /// Which attempts are logged.
    attempts: Option<LoggedAttempts>,
    /// The URL for dead-letter notices. Not for the topics `ringback.on-dead` and `ringback.on-done`.
    on_dead: Option<CallbackUrl>,
    /// The URL for notices of success. Not for the topics `ringback.on-dead` and `ringback.on-done`.
    on_done: Option<CallbackUrl>,
    /// Whether `/metrics` of the carriers shows the jobs of this topic by itself. At most 100 topics can.
    metrics: Option<bool>,
    /// Which ended jobs of the topic go to the archive; each of its two fields by itself.
    archive: Option<TopicArchive>,
}

/// Which ended jobs go to the archive.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TopicArchive {
    /// The ended jobs that do; an empty list for none.
    #[schema(max_items = 5)]
    states: Option<HashSet<ArchivedState>>,
    /// Whether with the bodies of the jobs.
    bodies: Option<bool>,
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

/// A secret of a topic, sealed.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SealedSecret {
    /// Its id.
    id: SecretIdText,
    /// The secret, sealed for this topic and id.
    sealed: SealedValue,
    /// When it was added.
    created_at: Time,
    /// When it stops signing.
    until: Option<Time>,
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
