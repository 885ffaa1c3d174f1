//! Redrives: revive many dead jobs of a topic. Start one, follow its progress, stop it. The carriers
//! do the work.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::LOCATION;
use http::{HeaderValue, StatusCode};
use ringback_core::contract::{Bulk, BulkTarget, DeadFilter};
use ringback_core::job::Topic;
use ringback_core::wire::{AuditLogTarget, RedriveAsk, RevivalAnswer, RevivalsAnswer};
use serde_json::json;

use super::bulk::start;
use crate::access::Authenticated;
use crate::audit_log::{Audited, Change};
use crate::error::{ApiError, JsonResult};
use crate::extract::{MaybeJson, RedrivePath, TopicPath, unknown_redrive};
use crate::limits::Deadline;
use crate::schema::{
    CreateProblems, QueryProblems, RedriveParams, RedriveProblems, ReviveRequest, TopicParams,
};
use crate::state::ApiState;

/// Revive many dead jobs
///
/// Starts a revival: the jobs of the topic that are dead at the time of this call become due now, with
/// their failures counted from zero and their attempts kept. A carrier revives `rate` jobs per second;
/// `Location` is where to get the progress. While 16 revivals run, over all topics, the answer is 409; so it is while half
/// of those that the others leave are of the caller's tenant.
#[utoipa::path(
    post, path = "/v1/topics/{topic}/dead/revive", tag = "dead", operation_id = "revive_dead",
    params(TopicParams),
    request_body(content = ReviveRequest, extensions(("x-may-be-left-out" = json!(true)))),
    responses(
        (status = 202, description = "Started", body = RevivalAnswer, headers(("Location" = String, description = "Its progress"))),
        CreateProblems,
    ),
)]
pub(crate) async fn begin(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    TopicPath(topic): TopicPath,
    MaybeJson(json): MaybeJson,
) -> Result<Response, ApiError> {
    let RedriveAsk { reason, after, before, rate } = RedriveAsk::parse(&json)?;
    let target = BulkTarget::Dead(DeadFilter { topic: topic.clone(), reason, after, before });
    let bulk = start(&api, &caller, &target, rate).await?;
    let location = format!("/v1/topics/{topic}/revivals/{}", bulk.id);
    let location = HeaderValue::try_from(location).expect("topics and ids are visible ASCII");
    let Json(answer) = of_topic(Some(bulk), &topic)?;
    let target = AuditLogTarget { revival: Some(answer.id.clone()), ..AuditLogTarget::default() };
    let change = Change::of(target).after(&answer);
    Ok((StatusCode::ACCEPTED, change, [(LOCATION, location)], Json(answer)).into_response())
}

/// List revivals
///
/// The revivals of the topic that are running or ended within a day, newest first.
#[utoipa::path(
    get, path = "/v1/topics/{topic}/revivals", tag = "dead", operation_id = "list_revivals",
    params(TopicParams),
    responses((status = 200, description = "The revivals", body = RevivalsAnswer), QueryProblems),
)]
pub(crate) async fn list(State(api): ApiState, TopicPath(topic): TopicPath) -> JsonResult<RevivalsAnswer> {
    let all = Deadline::from_now().bound(api.store.bulks()).await??;
    let of_topic = |revival: &RevivalAnswer| revival.topic == topic.name();
    let own = all.iter().filter(|bulk| bulk.target.tenant() == topic.tenant());
    let items = own.filter_map(RevivalAnswer::of).filter(of_topic).collect();
    Ok(Json(RevivalsAnswer { items }))
}

/// Get the progress of a revival
///
/// While no carrier runs, the revival stays `running` and makes no progress.
#[utoipa::path(
    get, path = "/v1/topics/{topic}/revivals/{revival}", tag = "dead", operation_id = "get_revival",
    params(RedriveParams),
    responses((status = 200, description = "As it is now", body = RevivalAnswer), RedriveProblems),
)]
pub(crate) async fn get(
    State(api): ApiState,
    RedrivePath(topic, id): RedrivePath,
) -> JsonResult<RevivalAnswer> {
    let found = Deadline::from_now().bound(api.store.bulk(id)).await??;
    of_topic(found, &topic)
}

/// Stop a revival
///
/// After a 200 no more jobs are revived; jobs that were revived before stay so. A revival that has
/// ended is returned unchanged.
#[utoipa::path(
    delete, path = "/v1/topics/{topic}/revivals/{revival}", tag = "dead", operation_id = "stop_revival",
    params(RedriveParams),
    responses((status = 200, description = "As it is now", body = RevivalAnswer), RedriveProblems),
)]
pub(crate) async fn stop(
    State(api): ApiState,
    RedrivePath(topic, id): RedrivePath,
) -> Audited<RevivalAnswer> {
    let stopped = Deadline::from_now().bound(async {
        let Json(before) = of_topic(api.store.bulk(id).await?, &topic)?;
        let Json(answer) = of_topic(api.store.stop_bulk(id).await?, &topic)?;
        let change = Change::default().before(json!({"state": before.state}));
        let change = change.after(json!({"state": answer.state})).count(answer.revived);
        Ok((change, Json(answer)))
    });
    stopped.await?
}

fn of_topic(revival: Option<Bulk>, topic: &Topic) -> JsonResult<RevivalAnswer> {
    let is_of_topic =
        |bulk: &Bulk| matches!(&bulk.target, BulkTarget::Dead(filter) if filter.topic == *topic);
    let answer = revival.filter(is_of_topic).as_ref().and_then(RevivalAnswer::of);
    answer.map(Json).ok_or_else(unknown_redrive)
}
