//! Topics: list them; get one, set its policy, pause and resume it.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use ringback_admission::{Principal, cannot_be_sent, invalid_field, limit_reached};
use ringback_core::contract::{StoreError, TopicPage, is_notice_topic};
use ringback_core::credential::CredentialKey;
use ringback_core::job::Topic;
use ringback_core::policy::{Metrics, Policy};
use ringback_core::wire::{
    FieldError, PolicyAnswer, Problem, TopicAnswer, TopicsAnswer, brings_secrets, close_policy, parse_policy,
    policy_of_notices, secret_header_values, unmask_policy, with_secrets,
};
use ringback_service::http_server::Peer;
use serde_json::json;

use super::policy_change::{applied, check_share_of_policies, shown_policy};
use super::secrets::with_sealed;
use crate::access::As;
use crate::audit_log::{Change, Noted};
use crate::error::{ApiError, JsonResult};
use crate::extract::{JsonBody, NoBody, PutFrom, Query, TopicPath, TopicsQuery, Upload};
use crate::limits::Deadline;
use crate::schema::{
    CreateProblems, EmptyRequest, FindProblems, NoBodyProblems, PolicyRequest, PutSource, QueryProblems,
    ResumeProblems, TopicCursor, TopicParams,
};
use crate::sealed_headers::{with_opened, with_sealed_values};
use crate::state::{Api, ApiState};

/// List topics
///
/// Lists the topics that have jobs, had jobs recently, are paused or have a policy, sorted by name.
/// `next` is null on the last page.
#[utoipa::path(
    get, path = "/v1/topics", tag = "topics", operation_id = "list_topics",
    params(
        ("cursor" = Option<TopicCursor>, Query, description = "`next` of the previous page; opaque"),
        ("limit" = Option<usize>, Query, description = "The most topics of the page; 100 by default", example = 100, minimum = 1, maximum = 1000),
    ),
    responses((status = 200, description = "A page", body = TopicsAnswer), QueryProblems),
)]
pub(crate) async fn list_topics(
    State(api): ApiState,
    As(caller): As,
    peer: Peer,
    Query(TopicsQuery { after, limit }): Query<TopicsQuery>,
) -> JsonResult<TopicsAnswer> {
    let deadline = Deadline::from_now();
    let _turn = deadline.bound(api.scans.wait(caller.claimant(peer))).await?;
    let mut page = deadline.bound(page_of(&api, &caller, after.as_ref(), limit)).await??;
    let policies = api.policies.all().unwrap_or_default();
    let with_policy = policies.keys().filter(|topic| caller.owns(topic));
    add_topics(&mut page, with_policy, after.as_ref(), limit);
    let answer = |(topic, counts)| TopicAnswer::new(&topic, &counts, policies.get(&topic).map(AsRef::as_ref));
    let items = page.items.into_iter().map(answer).collect();
    Ok(Json(TopicsAnswer { items, next: page.next.map(|topic| topic.to_string()) }))
}

/// A page of the caller's topics. Those of a key for some topics are few, and read one by one, so that the cursor names
/// no other.
async fn page_of(
    api: &Api,
    caller: &Principal,
    after: Option<&Topic>,
    limit: usize,
) -> Result<TopicPage, StoreError> {
    if caller.topics().is_empty() {
        return api.store.topics(caller.own(), after, limit).await;
    }
    let mut topics: Vec<_> =
        caller.topics().iter().filter(|topic| after.is_none_or(|after| *topic > after)).collect();
    topics.sort_unstable();
    let (is_more, mut items) = (topics.len() > limit, Vec::new());
    topics.truncate(limit);
    let next = topics.last().filter(|_| is_more).map(|topic| (*topic).clone());
    for topic in topics {
        items.extend(api.store.topic(topic).await?.map(|counts| (topic.clone(), counts)));
    }
    Ok(TopicPage { items, next })
}

/// Adds those of the topics that are in the page's range, for topics that have a policy and nothing else.
fn add_topics<'a>(
    page: &mut TopicPage,
    topics: impl Iterator<Item = &'a Topic>,
    after: Option<&Topic>,
    limit: usize,
) {
    let last = page.next.as_ref();
    let is_on_page =
        |topic: &&Topic| after.is_none_or(|after| *topic > after) && last.is_none_or(|last| *topic <= last);
    let mut items: BTreeMap<_, _> = std::mem::take(&mut page.items).into_iter().collect();
    for topic in topics.filter(is_on_page) {
        items.entry(topic.clone()).or_default();
    }
    let is_more = items.len() > limit;
    page.items = items.into_iter().take(limit).collect();
    if is_more {
        page.next = page.items.last().map(|(topic, _)| topic.clone());
    }
}

/// Get a topic
///
/// Returns the number of its jobs in each state, how late they are, and its policy.
#[utoipa::path(
    get, path = "/v1/topics/{topic}", tag = "topics", operation_id = "get_topic",
    params(TopicParams),
    responses((status = 200, description = "The topic", body = TopicAnswer), FindProblems),
)]
pub(crate) async fn get_topic(State(api): ApiState, TopicPath(topic): TopicPath) -> JsonResult<TopicAnswer> {
    find(&api, topic, Deadline::from_now()).await.map(Json)
}

/// Set topic defaults
///
/// Sets the policy of a topic: defaults for jobs that do not set these fields themselves. The whole
/// policy is replaced. It takes effect within a second, also for existing jobs, except `url`, which
/// only applies to jobs submitted later. This API process nearly always applies it before it answers.
/// A secret header whose value is `[masked by ringback]`, as answers show it, keeps its stored value. Values of secret
/// headers are stored sealed if there is a master key. The secrets that sign callbacks stay as they are, unless the policy
/// brings sealed ones from an export of topics.
#[utoipa::path(
    put, path = "/v1/topics/{topic}", tag = "topics", operation_id = "put_policy",
    params(
        TopicParams,
        ("from" = Option<PutSource>, Query, description = "Take also URLs that no client can send to, as a restore does"),
    ),
    request_body = PolicyRequest,
    responses(
        (status = 200, description = "The policy replaced another", body = PolicyAnswer),
        (status = 201, description = "The topic had no policy before", body = PolicyAnswer),
        CreateProblems,
    ),
)]
pub(crate) async fn put_policy(
    State(api): ApiState,
    As(caller): As,
    TopicPath(topic): TopicPath,
    Query(from): Query<PutFrom>,
    JsonBody(Upload { bytes, deadline, .. }, _): JsonBody,
) -> Result<Response, ApiError> {
    let policy = close_policy(parse_policy(&bytes)?)?;
    check_policy(&policy, &caller, from)?;
    check_share_of_policies(&api, &caller, &topic)?;
    if let Some(key) = policy.credential_of(&topic) {
        deadline.bound(check_credential(&api, &key)).await??;
    }
    if is_notice_topic(&topic)
        && let Some(problem) = policy_of_notices(&policy)
    {
        return Err(problem.into());
    }
    // Also if all that it brings have expired.
    let brings = brings_secrets(&policy);
    let brought = with_sealed(&api, &topic, policy)?;
    let policy = with_opened(&api, &topic, brought.clone())?;
    // What a restore brings sealed stays as it was sealed.
    let is_sealed = brought.sealed_headers.is_some() && secret_header_values(&brought).is_none();
    let mut before = None;
    let mut complete = |stored: Option<&Policy>| {
        before = shown_policy(&topic, stored);
        let is_masked = policy.headers.masked_names().next().is_some();
        let policy = if is_masked {
            let stored = stored.map(|stored| with_opened(&api, &topic, stored.clone())).transpose()?;
            unmask_policy(&policy, stored.as_ref())?
        } else {
            policy.clone()
        };
        let policy = if is_sealed { brought.clone() } else { with_sealed_values(&api, &topic, &policy)? };
        match stored {
            Some(stored) if !stored.secrets.is_empty() && !brings => {
                Ok(with_secrets(&policy, &stored.secrets))
            }
            _ => Ok::<_, Problem>(policy),
        }
    };
    let (policy, put) = match deadline.bound(api.store.change_policy(&topic, &mut complete)).await? {
        // Nothing is known of its secrets, so the caller has to say what becomes of them.
        Err(StoreError::Unreadable(_)) if brings => {
            let policy = complete(None)?;
            let put = deadline.bound(api.store.put_policy(&topic, &policy)).await??;
            (policy, put)
        }
        Err(StoreError::Unreadable(_)) => return Err(unreadable(&topic)),
        changed => changed??,
    };
    let status = applied(&api, put).await?;
    let answer = PolicyAnswer::new(&topic, Some(&policy));
    let change = Change::default().before(before).after(&answer.policy);
    Ok((status, change, Json(answer)).into_response())
}

/// Checks that a caller may set a policy.
fn check_policy(policy: &Policy, caller: &Principal, from: PutFrom) -> Result<(), Problem> {
    let urls = [("url", &policy.url), ("on_dead", &policy.on_dead), ("on_done", &policy.on_done)].into_iter();
    let judge = |field, url| match from {
        PutFrom::Caller => cannot_be_sent(field, url).or_else(|| caller.judge(field, url)),
        PutFrom::Backup => caller.judge(field, url),
    };
    let mut errors: Vec<_> = urls.filter_map(|(field, url)| judge(field, url.as_ref()?)).collect();
    if policy.metrics == Metrics::ByTopic && !caller.is_operator() {
        errors.push(FieldError {
            field: "metrics".to_owned(),
            detail: "the topics with metrics of their own are few, and the operator chooses them".to_owned(),
            allowed: "false, or the root key".to_owned(),
        });
    }
    if errors.is_empty() { Ok(()) } else { Err(Problem::fields(errors)) }
}

/// Checks that there is a credential. This process may not know of it yet.
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

/// Pause a topic
///
/// Stops delivering the topic: after the answer none of its jobs is sent to its callbacks or given to
/// consumers. Jobs can still be submitted, cancelled and so on, and deliveries that have begun are
/// settled. A topic without jobs can be paused too. Pausing it again changes nothing.
#[utoipa::path(
    post, path = "/v1/topics/{topic}/pause", tag = "topics", operation_id = "pause",
    params(TopicParams),
    request_body(content = EmptyRequest, extensions(("x-may-be-left-out" = json!(true)))),
    responses((status = 200, description = "The topic, paused", body = TopicAnswer), NoBodyProblems),
)]
pub(crate) async fn pause(
    State(api): ApiState,
    As(caller): As,
    TopicPath(topic): TopicPath,
    NoBody(deadline): NoBody,
) -> Noted<TopicAnswer> {
    let was_paused = deadline.bound(is_paused(&api, &topic)).await??;
    deadline
        .bound(api.store.pause(&topic, api.admission.quotas.limits(&caller)))
        .await??
        .map_err(limit_reached)?;
    let change = Change::default().before(json!({"paused": was_paused})).after(json!({"paused": true}));
    Ok((change, Json(find(&api, topic, deadline).await?)))
}

/// Resume a topic
///
/// Delivers its waiting jobs again. Resuming a topic that is not paused changes nothing.
#[utoipa::path(
    post, path = "/v1/topics/{topic}/resume", tag = "topics", operation_id = "resume",
    params(TopicParams),
    request_body(content = EmptyRequest, extensions(("x-may-be-left-out" = json!(true)))),
    responses((status = 200, description = "The topic, not paused", body = TopicAnswer), ResumeProblems),
)]
pub(crate) async fn resume(
    State(api): ApiState,
    TopicPath(topic): TopicPath,
    NoBody(deadline): NoBody,
) -> Noted<TopicAnswer> {
    let was_paused = deadline.bound(is_paused(&api, &topic)).await??;
    if !deadline.bound(api.store.resume(&topic)).await?? {
        let why = "it has no jobs, had none recently, and is not paused";
        return Err(ApiError::new(StatusCode::NOT_FOUND, format!("topic {topic} cannot be resumed: {why}")));
    }
    let change = Change::default().before(json!({"paused": was_paused})).after(json!({"paused": false}));
    Ok((change, Json(find(&api, topic, deadline).await?)))
}

/// Whether a topic is paused, as it is read just before that changes.
async fn is_paused(api: &Api, topic: &Topic) -> Result<bool, StoreError> {
    Ok(api.store.topic(topic).await?.is_some_and(|counts| counts.paused))
}

async fn find(api: &Api, topic: Topic, deadline: Deadline) -> Result<TopicAnswer, ApiError> {
    let both = async { tokio::try_join!(api.store.topic(&topic), api.store.policy(&topic)) };
    let (counts, policy) = deadline.bound(both).await??;
    if counts.is_none() && policy.is_none() {
        return Err(unknown(&topic));
    }
    Ok(TopicAnswer::new(&topic, &counts.unwrap_or_default(), policy.as_ref()))
}

fn unreadable(topic: &Topic) -> ApiError {
    let detail = format!(
        "the stored policy of topic {topic} cannot be read: a later version may have written it; add \"secrets\":[] to replace it and its signing secrets"
    );
    ApiError::new(StatusCode::CONFLICT, detail)
}

fn unknown(topic: &Topic) -> ApiError {
    let detail = format!(
        "no topic {topic} is known: it has no jobs, had none recently, is not paused, and has no policy"
    );
    ApiError::new(StatusCode::NOT_FOUND, detail)
}
