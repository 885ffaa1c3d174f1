//! Topics: lists them, gets, pauses and resumes one, and unblocks a key of one. `policies` sets their policies, `topic_deletion` deletes one.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use ringback_admission::{Principal, limit_reached};
use ringback_core::job::Topic;
use ringback_core::store_types::{LimitTarget, StoreError, TopicPage};
use ringback_service::http_server::Peer;
use ringback_wire::{LimitsResponse, OrderResponse, TopicResponse, TopicsResponse, UnblockResponse};
use serde_json::json;

use crate::access::Authenticated;
use crate::audit_log::{Audited, Change};
use crate::error::{ApiError, JsonResult};
use crate::extract::{NoBody, OrderKeyPath, Query, TopicPath, TopicsQuery, cursor_of};
use crate::limits::Deadline;
use crate::schema::{
    EmptyRequest, FindProblems, NoBodyProblems, OrderKeyParams, QueryProblems, ResumeProblems, TopicCursor,
    TopicParams,
};
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
    responses((status = 200, description = "A page", body = TopicsResponse), QueryProblems),
)]
pub(crate) async fn list_topics(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    peer: Peer,
    Query(TopicsQuery { after, limit }): Query<TopicsQuery>,
) -> JsonResult<TopicsResponse> {
    let deadline = Deadline::from_now();
    let _turn = deadline.bound(api.scans.wait(caller.holder(peer))).await?;
    let mut page = deadline.bound(page_of(&api, &caller, after.as_ref(), limit)).await??;
    let policies = api.policies.all().unwrap_or_default();
    let with_policy = policies.keys().filter(|topic| caller.owns(topic));
    add_topics(&mut page, with_policy, after.as_ref(), limit);
    let answer = |(topic, counts): (Topic, _)| TopicResponse {
        tenant: caller.shown_tenant(topic.tenant().as_ref()),
        ..TopicResponse::new(&topic, &counts, policies.get(&topic).map(AsRef::as_ref))
    };
    let items = page.items.into_iter().map(answer).collect();
    Ok(Json(TopicsResponse { items, next: page.next.map(|topic| cursor_of(&topic, &caller)) }))
}

/// A page of the caller's topics. The topics of a key for some topics are few, and read one by one, so that the cursor
/// names no other topic.
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

/// Adds the `topics` that are in the range of a page and not on it, with counts of 0, for topics that have only a
/// policy. Cuts the page to `limit` again.
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
/// Returns the number of its jobs in each state, how late they are, its policy, how much of its limits is used, and how
/// its jobs are ordered.
#[utoipa::path(
    get, path = "/v1/topics/{topic}", tag = "topics", operation_id = "get_topic",
    params(TopicParams),
    responses((status = 200, description = "The topic", body = TopicResponse), FindProblems),
)]
pub(crate) async fn get_topic(
    State(api): ApiState,
    TopicPath(topic): TopicPath,
) -> JsonResult<TopicResponse> {
    find(&api, topic, Deadline::from_now()).await.map(Json)
}

/// Pause a topic
///
/// Stops delivering the topic: after the answer none of its jobs is sent to its callbacks or given to
/// consumers. Jobs can still be submitted, cancelled and so on, and deliveries that have begun are
/// settled. A topic without jobs can be paused too, before its first one; where it has no policy either, `note` says so.
/// Pausing it again changes nothing.
#[utoipa::path(
    post, path = "/v1/topics/{topic}/pause", tag = "topics", operation_id = "pause",
    params(TopicParams),
    request_body(content = EmptyRequest, extensions(("x-may-be-left-out" = json!(true)))),
    responses((status = 200, description = "The topic, paused", body = TopicResponse), NoBodyProblems),
)]
pub(crate) async fn pause(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    TopicPath(topic): TopicPath,
    NoBody(deadline): NoBody,
) -> Audited<TopicResponse> {
    let was_paused = deadline.bound(is_paused(&api, &topic)).await??;
    deadline
        .bound(api.store.pause(&topic, api.admission.quotas.limits(&caller)))
        .await??
        .map_err(limit_reached)?;
    let change = Change::default().before(json!({"paused": was_paused})).after(json!({"paused": true}));
    let answer = find(&api, topic, deadline).await?;
    let note = answer.is_unused().then(|| {
        let topic = &answer.topic;
        format!("topic {topic} has no jobs and no policy so far: the pause holds for the jobs to come")
    });
    Ok((change, Json(TopicResponse { note, ..answer })))
}

/// Resume a topic
///
/// Delivers its waiting jobs again. Resuming a topic that is not paused changes nothing.
#[utoipa::path(
    post, path = "/v1/topics/{topic}/resume", tag = "topics", operation_id = "resume",
    params(TopicParams),
    request_body(content = EmptyRequest, extensions(("x-may-be-left-out" = json!(true)))),
    responses((status = 200, description = "The topic, not paused", body = TopicResponse), ResumeProblems),
)]
pub(crate) async fn resume(
    State(api): ApiState,
    TopicPath(topic): TopicPath,
    NoBody(deadline): NoBody,
) -> Audited<TopicResponse> {
    let was_paused = deadline.bound(is_paused(&api, &topic)).await??;
    if !deadline.bound(api.store.resume(&topic)).await?? {
        let why = "it has no jobs, had none recently, and is not paused";
        return Err(ApiError::new(StatusCode::NOT_FOUND, format!("topic {topic} cannot be resumed: {why}")));
    }
    let change = Change::default().before(json!({"paused": was_paused})).after(json!({"paused": false}));
    Ok((change, Json(find(&api, topic, deadline).await?)))
}

/// Unblock a key
///
/// Delivers the next job of a key that a dead job holds, as `order_on_dead` `hold` of the topic's policy says. The dead
/// job stays dead, and is passed over. If no dead job holds the key nothing changes, and `unblocked` is false.
#[utoipa::path(
    post, path = "/v1/topics/{topic}/keys/{key}/unblock", tag = "topics", operation_id = "unblock",
    params(OrderKeyParams),
    request_body(content = EmptyRequest, extensions(("x-may-be-left-out" = json!(true)))),
    responses((status = 200, description = "Whether a dead job held the key", body = UnblockResponse), NoBodyProblems),
)]
pub(crate) async fn unblock(
    State(api): ApiState,
    OrderKeyPath(topic, key): OrderKeyPath,
    NoBody(deadline): NoBody,
) -> Audited<UnblockResponse> {
    let unblocked = deadline.bound(api.store.unblock(&topic, &key)).await??;
    let change = if unblocked { Change::default() } else { Change::nothing() };
    Ok((change, Json(UnblockResponse::new(&topic, &key, unblocked))))
}

/// Whether a topic is paused; false if it is not known.
async fn is_paused(api: &Api, topic: &Topic) -> Result<bool, StoreError> {
    Ok(api.store.topic(topic).await?.is_some_and(|counts| counts.paused))
}

async fn find(api: &Api, topic: Topic, deadline: Deadline) -> Result<TopicResponse, ApiError> {
    let both = async { tokio::try_join!(api.store.topic(&topic), api.store.policy(&topic)) };
    let (counts, policy) = deadline.bound(both).await??;
    if counts.is_none() && policy.is_none() {
        let detail = format!(
            "no topic {topic} is known: it has no jobs, had none recently, is not paused, and has no policy"
        );
        return Err(ApiError::new(StatusCode::NOT_FOUND, detail));
    }
    let mut answer = TopicResponse::new(&topic, &counts.unwrap_or_default(), policy.as_ref());
    let policy = policy.unwrap_or_default();
    // Most topics have neither, and cost no more calls.
    if policy.order.is_some() {
        answer.order = deadline.bound(api.store.topic_order(&topic)).await??.map(OrderResponse::from);
    }
    if !policy.limits.is_empty() {
        let limits = deadline.bound(api.store.limits(&[LimitTarget::Topic(topic)])).await??;
        answer.limits = limits.first().map(LimitsResponse::from);
    }
    Ok(answer)
}
