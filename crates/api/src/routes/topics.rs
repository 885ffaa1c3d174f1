//! Topics: what is known of them, one by its name or all page by page; pause and resume.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use ringback_core::contract::TopicPage;
use ringback_core::job::Topic;
use ringback_core::policy::Policies;
use ringback_core::wire::{TopicAnswer, TopicsAnswer};

use super::jobs::full;
use crate::deadline::Deadline;
use crate::error::ApiError;
use crate::extract::{NoBody, TopicPath, TopicsQuery};
use crate::openapi::{PauseProblems, ResumeProblems, TopicProblems, TopicsProblems};
use crate::state::Api;

/// List topics
///
/// The topics that have jobs, had some lately, are paused or have a policy, in the order of their names. `next` is null on the
/// last page.
#[utoipa::path(
    get, path = "/v1/topics", tag = "topics", operation_id = "list_topics",
    params(
        ("cursor" = Option<String>, Query, description = "The next of the page before; opaque"),
        ("limit" = Option<usize>, Query, description = "The most topics of the page; 100 by default", minimum = 1, maximum = 1000),
    ),
    responses((status = 200, description = "A page", body = TopicsAnswer), TopicsProblems),
)]
pub(crate) async fn list_topics(
    State(api): State<Arc<Api>>,
    TopicsQuery { behind, limit }: TopicsQuery,
) -> Result<Json<TopicsAnswer>, ApiError> {
    let page = Deadline::from_now().bound(api.store.topics(behind.as_ref(), limit)).await;
    let mut page = page.map_err(ApiError::too_late)??;
    let policies = api.policies.all().unwrap_or_default();
    with_policies(&mut page, &policies, behind.as_ref(), limit);
    let answer = |(topic, counts)| TopicAnswer::new(&topic, &counts, policies.get(&topic).map(AsRef::as_ref));
    let items = page.items.into_iter().map(answer).collect();
    Ok(Json(TopicsAnswer { items, next: page.next.map(|topic| topic.to_string()) }))
}

/// Adds the topics that have a policy, and nothing else, where they belong.
fn with_policies(page: &mut TopicPage, policies: &Policies, behind: Option<&Topic>, limit: usize) {
    let last = page.next.as_ref();
    let is_here = |topic: &&Topic| {
        behind.is_none_or(|behind| *topic > behind) && last.is_none_or(|last| *topic <= last)
    };
    let mut items: BTreeMap<_, _> = std::mem::take(&mut page.items).into_iter().collect();
    for topic in policies.keys().filter(is_here) {
        items.entry(topic.clone()).or_default();
    }
    let is_more = items.len() > limit;
    page.items = items.into_iter().take(limit).collect();
    if is_more {
        page.next = page.items.last().map(|(topic, _)| topic.clone());
    }
}

/// Look at a topic
///
/// How many of its jobs are in which state, how late they are, and its policy.
#[utoipa::path(
    get, path = "/v1/topics/{topic}", tag = "topics", operation_id = "get_topic",
    params(("topic" = String, Path, description = "The topic", pattern = "^[A-Za-z0-9._-]{1,64}$")),
    responses((status = 200, description = "The topic", body = TopicAnswer), TopicProblems),
)]
pub(crate) async fn get_topic(
    State(api): State<Arc<Api>>,
    TopicPath(topic): TopicPath,
) -> Result<Json<TopicAnswer>, ApiError> {
    known(&api, topic, Deadline::from_now()).await.map(Json)
}

/// Pause a topic
///
/// From the answer on nothing of it is handed over, to its callbacks or to consumers. Submitting,
/// cancelling and all else go on; what is being handed over is settled. A topic that has had no job yet
/// can be paused too. To pause one that is paused changes nothing.
#[utoipa::path(
    post, path = "/v1/topics/{topic}/pause", tag = "topics", operation_id = "pause",
    params(("topic" = String, Path, description = "The topic", pattern = "^[A-Za-z0-9._-]{1,64}$")),
    responses((status = 200, description = "The topic, paused", body = TopicAnswer), PauseProblems),
)]
pub(crate) async fn pause(
    State(api): State<Arc<Api>>,
    TopicPath(topic): TopicPath,
    NoBody(deadline): NoBody,
) -> Result<Json<TopicAnswer>, ApiError> {
    let paused = deadline.bound(api.store.pause(&topic)).await.map_err(ApiError::too_late)??;
    paused.map_err(full)?;
    known(&api, topic, deadline).await.map(Json)
}

/// Resume a topic
///
/// What waits is handed over again. To resume one that is not paused changes nothing.
#[utoipa::path(
    post, path = "/v1/topics/{topic}/resume", tag = "topics", operation_id = "resume",
    params(("topic" = String, Path, description = "The topic", pattern = "^[A-Za-z0-9._-]{1,64}$")),
    responses((status = 200, description = "The topic, not paused", body = TopicAnswer), ResumeProblems),
)]
pub(crate) async fn resume(
    State(api): State<Arc<Api>>,
    TopicPath(topic): TopicPath,
    NoBody(deadline): NoBody,
) -> Result<Json<TopicAnswer>, ApiError> {
    let is_known = deadline.bound(api.store.resume(&topic)).await.map_err(ApiError::too_late)??;
    if !is_known {
        let why = "it has no jobs, had none lately, and is not paused";
        return Err(ApiError::new(StatusCode::NOT_FOUND, format!("topic {topic} cannot be resumed: {why}")));
    }
    known(&api, topic, deadline).await.map(Json)
}

async fn known(api: &Api, topic: Topic, deadline: Deadline) -> Result<TopicAnswer, ApiError> {
    let both = async { tokio::try_join!(api.store.topic(&topic), api.store.policy(&topic)) };
    let (counts, policy) = deadline.bound(both).await.map_err(ApiError::too_late)??;
    if counts.is_none() && policy.is_none() {
        return Err(unknown(&topic));
    }
    Ok(TopicAnswer::new(&topic, &counts.unwrap_or_default(), policy.as_ref()))
}

fn unknown(topic: &Topic) -> ApiError {
    let detail = format!(
        "no topic {topic} is known: it has no jobs, had none lately, is not paused, and has no policy"
    );
    ApiError::new(StatusCode::NOT_FOUND, detail)
}
