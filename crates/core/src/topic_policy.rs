//! The policy of a topic: defaults for its jobs, the headers, credential and secrets of its callbacks, which attempts
//! are logged, which ended jobs are archived, and whether metrics show it. Also the limits of policies.

mod secret;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use self::secret::{SecretId, StoredSecret};
use crate::clock::Timestamp;
use crate::credential::{CredentialKey, CredentialName};
use crate::enum_names::must_be;
use crate::flow::Limits;
use crate::job::{Callback, Headers, Topic};
use crate::retry::RetryPolicy;
use crate::store_types::{EndedState, EndedStates};

/// The longest policy as JSON without its secrets, in bytes.
pub const MAX_POLICY: usize = 16 * 1024;
/// The most policies of an installation.
pub const MAX_POLICIES: usize = 10_000;
/// The most topics of an installation whose policy has `metrics`, so that metrics have few labels.
pub const MAX_TOPICS_WITH_METRICS: usize = 100;
/// The most origins that the headers of a policy go to.
pub const MAX_HEADERS_TO: usize = 32;
/// The longest expected response body, in bytes.
pub const MAX_EXPECTED: usize = 1024;

/// The most statuses of a policy that bury a job.
pub const MAX_BURY_ON: usize = 32;
/// The most secrets of a topic.
pub const MAX_SECRETS: usize = 8;
/// The longest JSON of the secrets of a policy, in bytes.
pub const MAX_SECRETS_JSON: usize = 4 * 1024;
/// The longest sealed header values of a policy, in bytes: more than the base64 of as many headers as a policy may have.
pub const MAX_SEALED_HEADERS: usize = 24 * 1024;

/// The policy of a topic. A field that is `None` has no effect.
#[derive(Clone, Default, PartialEq)]
pub struct Policy {
    /// When failed jobs are retried.
    pub retry: Option<RetryPolicy>,
    /// The deadline of one attempt.
    pub timeout: Option<Duration>,
    /// How long a consumer keeps a pull job.
    pub ttr: Option<Duration>,
    /// The URL of jobs that are submitted without one.
    pub url: Option<Callback>,
    /// Headers of all jobs. A job's own header of the same name replaces one.
    pub headers: Headers,
    /// The origins whose callbacks get `headers`; `None` for all.
    pub headers_to: Option<Vec<String>>,
    /// The values of secret headers, sealed for [`Policy::sealed_name`]. `headers` have masks in their place.
    pub sealed_headers: Option<Box<str>>,
    /// The credential that callbacks carry to the origins that it names.
    pub credentials: Option<CredentialName>,
    /// The body that a receiver has to respond with, apart from white space at its ends.
    pub expect_body: Option<String>,
    /// The statuses of answers after which a job is dead at once, sorted.
    pub bury_on: Option<Vec<u16>>,
    /// What limits its callbacks, over all notifiers together.
    pub limits: Limits,
    /// Whether its jobs of one key are delivered in order, one at a time, and what the death of one means to the others.
    pub order: Option<OrderOnDead>,
    pub attempts: Option<Logging>,
    /// The URL for dead-letter notices of jobs without their own.
    pub on_dead: Option<Callback>,
    /// The URL for notices of the success of jobs without their own.
    pub on_done: Option<Callback>,
    /// Whether metrics show the jobs of this topic by itself.
    pub metrics: Metrics,
    /// Which of its ended jobs go to the archive.
    pub archive: ArchivePolicy,
    /// The secrets that sign its callbacks, the newest one first.
    pub secrets: Vec<StoredSecret>,
    /// The policy as JSON, each field as it was written.
    pub written: Box<str>,
}

impl Policy {
    /// The policy as JSON, each field as it was written, the secrets sealed; `{}` for an empty policy.
    pub fn written(&self) -> &str {
        if self.written.is_empty() { "{}" } else { &self.written }
    }

    /// The name that the secret header values are sealed for, so that they can be opened only for this topic and the
    /// origins in `headers_to`.
    pub fn sealed_name(&self, topic: &Topic) -> String {
        let origins = self.headers_to.as_ref().map_or_else(|| "*".to_owned(), |origins| origins.join(" "));
        format!("policy-headers {} {origins}", topic.as_str())
    }

    /// The headers that a callback to this origin gets; none if `headers_to` does not have the origin.
    pub fn headers_for(&self, origin: &str) -> &[(String, String)] {
        if self.sends_headers_to(origin) { self.headers.entries() } else { &[] }
    }

    pub fn credential_of(&self, topic: &Topic) -> Option<CredentialKey> {
        let name = self.credentials.clone()?;
        Some(CredentialKey { tenant: topic.tenant(), name })
    }

    /// The secrets that sign callbacks which are sent at `now`.
    pub fn signing_secrets(&self, now: Timestamp) -> impl Iterator<Item = &StoredSecret> {
        self.secrets.iter().filter(move |secret| secret.signs_at(now))
    }

    /// Whether callbacks to this origin get the headers.
    pub fn sends_headers_to(&self, origin: &str) -> bool {
        self.headers_to.as_ref().is_none_or(|origins| origins.iter().any(|one| one == origin))
    }
}

/// Without the JSON, whose headers can have secret values.
impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            retry,
            timeout,
            ttr,
            url,
            headers,
            headers_to,
            sealed_headers,
            credentials,
            expect_body,
            bury_on,
            limits,
            order,
            attempts,
            on_dead,
            on_done,
            metrics,
            archive,
            secrets,
            written: _,
        } = self;
        f.debug_struct("Policy")
            .field("retry", retry)
            .field("timeout", timeout)
            .field("ttr", ttr)
            .field("url", url)
            .field("headers", headers)
            .field("headers_to", headers_to)
            .field("sealed_headers", &sealed_headers.is_some())
            .field("credentials", credentials)
            .field("expect_body", expect_body)
            .field("bury_on", bury_on)
            .field("limits", limits)
            .field("order", order)
            .field("attempts", attempts)
            .field("on_dead", on_dead)
            .field("on_done", on_done)
            .field("metrics", metrics)
            .field("archive", archive)
            .field("secrets", &secrets.len())
            .finish_non_exhaustive()
    }
}

/// Which ended jobs of a topic go to the archive, if there is one. `None` leaves the choice to the archive's settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArchivePolicy {
    pub states: Option<EndedStates>,
    pub bodies: Option<bool>,
}

impl ArchivePolicy {
    /// Whether an ended job of this kind goes to the archive. `states` apply if the policy names none.
    pub fn wants(&self, kind: EndedState, states: EndedStates) -> bool {
        self.states.unwrap_or(states).has(kind)
    }
}

/// What the death of a job means to the jobs of its key that wait behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::EnumString, strum::VariantNames)]
#[strum(serialize_all = "lowercase", parse_err_ty = String, parse_err_fn = must_be::<Self>)]
pub enum OrderOnDead {
    /// The next one is delivered.
    #[default]
    Next,
    /// They wait until the dead job is revived or purged, or the key is unblocked.
    Hold,
}

/// Whether metrics show the jobs of a topic by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Metrics {
    /// Only within the sums of all topics.
    #[default]
    Together,
    /// Also by topic. At most [`MAX_TOPICS_WITH_METRICS`] topics.
    ByTopic,
}

/// Which attempts are logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::EnumString, strum::VariantNames)]
#[strum(serialize_all = "lowercase", parse_err_ty = String, parse_err_fn = must_be::<Self>)]
pub enum Logging {
    /// Failed attempts, and the success of a job that needed more than one attempt.
    #[default]
    Failed,
    All,
    Off,
}

impl Logging {
    /// Whether a failed attempt is logged.
    pub const fn notes_failure(self) -> bool {
        !matches!(self, Self::Off)
    }

    /// Whether the success of an attempt with this number is logged.
    pub const fn notes_success(self, attempt: u32) -> bool {
        match self {
            Self::Failed => attempt > 1,
            Self::All => true,
            Self::Off => false,
        }
    }
}

pub type Policies = HashMap<Topic, Arc<Policy>>;
