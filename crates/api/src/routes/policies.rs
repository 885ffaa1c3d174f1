//! The policy of a topic: puts it as a whole, or changes some of its fields. Both keep parts of the stored policy that
//! the caller cannot see or may not choose: secret values, signing secrets, and values that only others may set. The
//! values of secret headers are sealed before they are stored, if there is a master key, and opened to keep those that
//! a caller puts back as a mask. `topics` shows policies, and `topic_deletion` deletes them.

use std::borrow::Cow;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use ringback_admission::{Principal, cannot_be_sent, invalid_field};
use ringback_core::credential::CredentialKey;
use ringback_core::job::{Callback, Topic};
use ringback_core::store_types::{StoreError, is_notice_topic};
use ringback_core::topic_policy::{Metrics, Policy};
use ringback_wire::{
    PolicyPatch, PolicyPatchRequest, PolicyRequest, PolicyResponse, Problem, brings_secrets, close_policy,
    dropped_fields, parse_policy, policy_of_notices, secret_header_values, unmask_policy,
    with_opened_headers, with_sealed_headers, with_secrets,
};

use super::policy_change::{applied, check_share_of_policies, shown_policy};
use super::secrets::with_sealed;
use crate::access::Authenticated;
use crate::audit_log::Change;
use crate::error::ApiError;
use crate::extract::{JsonBody, PatchBody, PutFrom, Query, TopicPath, Upload};
use crate::limits::Deadline;
use crate::schema::{CreateProblems, RestoreSource, TopicParams};
use crate::state::{Api, ApiState};

/// Set topic defaults
///
/// Sets the policy of a topic: defaults for jobs that do not set these fields themselves, and limits of its callbacks.
/// The whole policy is replaced, and `dropped` names the fields that it had and no longer has. It takes effect within a
/// second, also for existing jobs, except `url`, which only applies to jobs submitted later. `limits` and `order` hold
/// from the answer on. This API process nearly always applies the policy before it answers. A secret header whose value
/// is `[masked by ringback]`, as answers show it, keeps its stored value. Values of secret headers are stored sealed if
/// there is a master key. The secrets that sign callbacks stay as they are, unless the policy brings sealed ones from
/// an export of topics.
#[utoipa::path(
    put, path = "/v1/topics/{topic}", tag = "topics", operation_id = "put_policy",
    params(
        TopicParams,
        ("from" = Option<RestoreSource>, Query, description = "Take also URLs that no client can send to, as a restore does"),
    ),
    request_body = PolicyRequest,
    responses(
        (status = 200, description = "The policy replaced another", body = PolicyResponse),
        (status = 201, description = "The topic had no policy before", body = PolicyResponse),
        CreateProblems,
    ),
)]
pub(crate) async fn put_policy(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    TopicPath(topic): TopicPath,
    Query(from): Query<PutFrom>,
    JsonBody(Upload { bytes, deadline, .. }, _): JsonBody,
) -> Result<Response, ApiError> {
    let policy = close_policy(parse_policy(&bytes)?)?;
    // Also if all that it brings have expired.
    let brings_secrets = brings_secrets(&policy);
    let brought = with_sealed(&api, &topic, policy)?;
    let opened = with_opened(&api, &topic, brought.clone())?;
    // What a restore brings sealed stays as it was sealed.
    let is_sealed = brought.sealed_headers.is_some() && secret_header_values(&brought).is_none();
    let (opened, sealed) = (Box::new(opened), is_sealed.then(|| Box::new(brought)));
    let wanted = NewPolicy::Whole { opened, sealed, brings_secrets, from };
    set(&api, &caller, &topic, &wanted, deadline).await
}

/// Change topic defaults
///
/// Changes some fields of the policy of a topic, and leaves the others as they are (RFC 7396): a field takes the place
/// of the stored one, and null removes it. `headers` and `archive` are merged one by one; `retry` and `limits` are each
/// replaced as a whole. A topic without a policy gets one. What is said of `PUT` holds for the policy that comes of it.
#[utoipa::path(
    patch, path = "/v1/topics/{topic}", tag = "topics", operation_id = "patch_policy",
    params(TopicParams),
    request_body(content((PolicyPatchRequest = "application/json"), (PolicyPatchRequest = "application/merge-patch+json"))),
    responses(
        (status = 200, description = "The policy was changed", body = PolicyResponse),
        (status = 201, description = "The topic had no policy before", body = PolicyResponse),
        CreateProblems,
    ),
)]
pub(crate) async fn patch_policy(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    TopicPath(topic): TopicPath,
    PatchBody(Upload { bytes, deadline, .. }): PatchBody,
) -> Result<Response, ApiError> {
    let wanted = NewPolicy::Patch(PolicyPatch::parse(&bytes)?);
    set(&api, &caller, &topic, &wanted, deadline).await
}

/// How a call changes the policy of a topic.
enum NewPolicy {
    /// This one.
    Whole {
        /// With the values of its secret headers.
        opened: Box<Policy>,
        /// With these sealed, as it was brought, if they were all brought so.
        sealed: Option<Box<Policy>>,
        /// Whether it brings the secrets of the topic, or says that it has none.
        brings_secrets: bool,
        from: PutFrom,
    },
    /// The stored one with a change.
    Patch(PolicyPatch),
}

impl NewPolicy {
    /// Whether the call replaces the stored policy with its secrets, so that nothing of it is needed.
    const fn is_complete(&self) -> bool {
        matches!(self, Self::Whole { brings_secrets: true, .. })
    }

    /// The policy as the caller has sent it, of a patch the fields alone. 422 if that is not valid.
    fn given(&self) -> Result<Cow<'_, Policy>, Problem> {
        match self {
            Self::Whole { opened, .. } => Ok(Cow::Borrowed(&**opened)),
            Self::Patch(patch) => patch.alone().map(Cow::Owned),
        }
    }

    /// The policy to store in place of `stored`, with secret header values sealed and masked ones kept, and with the
    /// stored signing secrets unless the call brings others. 422 if it is not valid, or the caller may not put it.
    fn complete(
        &self,
        api: &Api,
        caller: &Principal,
        topic: &Topic,
        stored: Option<&Policy>,
    ) -> Result<Policy, Problem> {
        let (policy, from, sealed) = match self {
            Self::Whole { opened, sealed, from, .. } => (Cow::Borrowed(&**opened), *from, sealed.as_deref()),
            Self::Patch(patch) => (Cow::Owned(close_policy(patch.merged(stored)?)?), PutFrom::Caller, None),
        };
        check_policy(&policy, stored, caller, from)?;
        if is_notice_topic(topic)
            && let Some(problem) = policy_of_notices(&policy)
        {
            return Err(problem);
        }
        let policy = match sealed {
            Some(sealed) => sealed.clone(),
            None if policy.headers.masked_names().next().is_some() => {
                let stored = stored.map(|stored| with_opened(api, topic, stored.clone())).transpose()?;
                with_sealed_values(api, topic, &unmask_policy(&policy, stored.as_ref())?)?
            }
            None => with_sealed_values(api, topic, &policy)?,
        };
        Ok(match stored {
            Some(stored) if !stored.secrets.is_empty() && !self.is_complete() => {
                with_secrets(&policy, &stored.secrets)
            }
            _ => policy,
        })
    }
}

/// Changes the stored policy of a topic as a call wants it. If the stored one cannot be read, it is only replaced by a
/// policy that says what becomes of the secrets; otherwise the answer is 409.
async fn set(
    api: &Api,
    caller: &Principal,
    topic: &Topic,
    wanted: &NewPolicy,
    deadline: Deadline,
) -> Result<Response, ApiError> {
    check_share_of_policies(api, caller, topic)?;
    if let Some(key) = wanted.given()?.credential_of(topic)
        && caller.topics().is_empty()
    {
        deadline.bound(check_credential(api, &key)).await??;
    }
    let (mut before, mut dropped) = (None, Vec::new());
    let mut complete = |stored: Option<&Policy>| {
        let policy = wanted.complete(api, caller, topic, stored)?;
        before = shown_policy(topic, stored);
        dropped = dropped_fields(stored, &policy);
        Ok::<_, Problem>(policy)
    };
    let changed = deadline.bound(api.store.change_policy(topic, &mut complete)).await?;
    let (policy, put) = match changed {
        // Nothing is known of its secrets, so the caller has to say what becomes of them.
        Err(StoreError::Unreadable(_)) if wanted.is_complete() => {
            let policy = complete(None)?;
            let put = deadline.bound(api.store.put_policy(topic, &policy)).await??;
            (policy, put)
        }
        Err(StoreError::Unreadable(_)) => return Err(unreadable(topic)),
        changed => changed??,
    };
    let status = applied(api, put).await?;
    let answer = PolicyResponse { dropped, ..PolicyResponse::new(topic, Some(&policy)) };
    let change = Change::default().before(before).after(&answer.policy);
    Ok((status, change, Json(answer)).into_response())
}

/// Checks that a caller may put a policy in place of the stored one: its new URLs, `metrics`, and `credentials`. Values
/// that the stored policy has already are allowed. 422 with all mistakes.
fn check_policy(
    policy: &Policy,
    stored: Option<&Policy>,
    caller: &Principal,
    from: PutFrom,
) -> Result<(), Problem> {
    let urls = |of: &Policy| {
        let (url, on_dead, on_done) = (of.url.clone(), of.on_dead.clone(), of.on_done.clone());
        [("url", url), ("on_dead", on_dead), ("on_done", on_done)]
    };
    let before = stored.map(urls);
    let is_new = |(field, url): &(&str, _)| {
        before.iter().flatten().all(|(known, before)| known != field || before != url)
    };
    let new = urls(policy).into_iter().filter(is_new);
    let judge = |field: &'static str, url: &Callback| match from {
        PutFrom::Caller => cannot_be_sent(field, url).or_else(|| caller.judge(field, url)),
        PutFrom::Backup => caller.judge(field, url),
    };
    let mut errors: Vec<_> = new.filter_map(|(field, url)| judge(field, url.as_ref()?)).collect();
    let has_metrics = |of: &Policy| of.metrics == Metrics::ByTopic;
    if has_metrics(policy) && !stored.is_some_and(has_metrics) && !caller.is_operator() {
        let detail = "the topics with metrics of their own are few, and the operator chooses them";
        errors.extend(invalid_field("metrics", detail, "false, or the root key").errors);
    }
    let kept = stored.and_then(|stored| stored.credentials.as_ref());
    if !caller.topics().is_empty() && policy.credentials.is_some() && policy.credentials.as_ref() != kept {
        let detail = "the key is for some topics, and a credential is for all topics of a tenant";
        let allowed = "the credential that the policy has; or a key without `topics`";
        errors.extend(invalid_field("credentials", detail, allowed).errors);
    }
    if errors.is_empty() { Ok(()) } else { Err(Problem::fields(errors)) }
}

/// Checks that there is a credential, in the store if this process does not know of it yet; 422 otherwise.
async fn check_credential(api: &Api, key: &CredentialKey) -> Result<(), ApiError> {
    if api.policies.credential(key).is_some() || api.store.credential(key).await?.is_some() {
        return Ok(());
    }
    let detail = format!("there is no credential {}", key.name);
    Err(invalid_field(
        "credentials",
        detail,
        "the name of a credential, put before (ringback credential set)",
    )
    .into())
}

fn unreadable(topic: &Topic) -> ApiError {
    let detail = format!(
        "the stored policy of topic {topic} cannot be read: a later version may have written it; add \"secrets\":[] to replace it and its signing secrets"
    );
    ApiError::new(StatusCode::CONFLICT, detail)
}

/// A policy with its sealed header values in the clear, to be put together with others and sealed again.
///
/// # Errors
/// 422 if they cannot be opened.
fn with_opened(api: &Api, topic: &Topic, policy: Policy) -> Result<Policy, Problem> {
    let Some(sealed) = &policy.sealed_headers else { return Ok(policy) };
    let why = match api.master_keys.open(&policy.sealed_name(topic), sealed) {
        Ok(values) => match with_opened_headers(&policy, &values) {
            Some(opened) => return Ok(opened),
            None => "they are not the values of the headers that are masked".to_owned(),
        },
        Err(why) => why.to_string(),
    };
    Err(invalid_field(
        "sealed_headers",
        format!("the values of secret headers cannot be opened: {why}"),
        "values that a master key of this installation has sealed for this topic and the same headers_to; or the values themselves in headers",
    ))
}

/// A policy with its secret header values sealed. Without a master key they stay as they are.
///
/// # Errors
/// 422 if the headers are too long with masks in place of the values.
fn with_sealed_values(api: &Api, topic: &Topic, policy: &Policy) -> Result<Policy, Problem> {
    let sealed = secret_header_values(policy)
        .and_then(|values| api.seal(&policy.sealed_name(topic), values.as_bytes()));
    sealed.map_or_else(|| Ok(policy.clone()), |sealed| with_sealed_headers(policy, &sealed))
}
