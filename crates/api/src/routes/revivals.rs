//! Reviving many dead jobs: begin it, see how far it is, stop it. A carrier does the work.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::LOCATION;
use http::{HeaderValue, StatusCode};
use ringback_core::contract::{DeadFilter, MAX_REDRIVES, Redrive, RedriveStart, StoreError};
use ringback_core::job::Topic;
use ringback_core::wire::{RevivalAnswer, RevivalsAnswer, ReviveAsk};

use crate::deadline::Deadline;
use crate::error::{ApiError, log};
use crate::extract::{MaybeJson, RevivalPath, TopicPath};
use crate::openapi::{BeginRevivalProblems, RevivalProblems, RevivalsProblems, ReviveRequest};
use crate::state::Api;
use crate::submit::Unavailable;

/// Revive many dead jobs
///
/// Those of the topic that are dead as of this call, as by reviving each: due now, failures
/// counted anew, attempts go on. A carrier does it, `rate` jobs a second; how far it is can be seen at
/// the location. At most 16 such calls can go on at once: 409 beyond.
#[utoipa::path(
    post, path = "/v1/topics/{topic}/dead/revive", tag = "dead", operation_id = "revive_dead",
    params(("topic" = String, Path, description = "The topic", pattern = "^[A-Za-z0-9._-]{1,64}$")),
    request_body = ReviveRequest,
    responses(
        (status = 202, description = "Begun", body = RevivalAnswer, headers(("Location" = String, description = "Where its progress is"))),
        BeginRevivalProblems,
    ),
)]
pub(crate) async fn begin(
    State(api): State<Arc<Api>>,
    TopicPath(topic): TopicPath,
    MaybeJson(json): MaybeJson,
) -> Result<Response, ApiError> {
    let ReviveAsk { reason, after, before, rate } = ReviveAsk::parse(&json)?;
    let (filter, token) = (DeadFilter { topic, reason, after, before }, api.token());
    // Where the connection broke the token makes the second call tell what the first has done.
    let begun = Deadline::from_now().bound(async {
        match api.store.start_redrive(token, &filter, rate).await {
            Err(StoreError::Away(_)) => api.store.start_redrive(token, &filter, rate).await,
            answer => answer,
        }
    });
    let begun = begun.await.map_err(|_elapsed| ApiError::of_revival(&Unavailable::TooLate))?;
    let begun = begun.map_err(|error| {
        log(&error);
        ApiError::of_revival(&Unavailable::Store(Arc::new(error)))
    })?;
    match begun {
        RedriveStart::Redrive(revival) => {
            let location = format!("/v1/topics/{}/revivals/{}", revival.filter.topic, revival.id);
            let location = HeaderValue::try_from(location).expect("topics and ids are visible ASCII");
            let answer = Json(RevivalAnswer::from(revival));
            Ok((StatusCode::ACCEPTED, [(LOCATION, location)], answer).into_response())
        }
        RedriveStart::TooMany => {
            let detail = format!(
                "{MAX_REDRIVES} revivals go on already, of all topics: stop one, or wait until one is done"
            );
            Err(ApiError::new(StatusCode::CONFLICT, detail))
        }
    }
}

/// List revivals
///
/// Those of the topic that go on, and those that ended within a day; the last one first.
#[utoipa::path(
    get, path = "/v1/topics/{topic}/revivals", tag = "dead", operation_id = "list_revivals",
    params(("topic" = String, Path, description = "The topic", pattern = "^[A-Za-z0-9._-]{1,64}$")),
    responses((status = 200, description = "Each as it is now", body = RevivalsAnswer), RevivalsProblems),
)]
pub(crate) async fn list(
    State(api): State<Arc<Api>>,
    TopicPath(topic): TopicPath,
) -> Result<Json<RevivalsAnswer>, ApiError> {
    let all = Deadline::from_now().bound(api.store.redrives()).await.map_err(ApiError::too_late)??;
    let items = all.into_iter().filter(|revival| revival.filter.topic == topic).map(Into::into).collect();
    Ok(Json(RevivalsAnswer { items }))
}

/// See how far a revival is
///
/// While no carrier runs it is `running` and its number stands still.
#[utoipa::path(
    get, path = "/v1/topics/{topic}/revivals/{revival}", tag = "dead", operation_id = "get_revival",
    params(
        ("topic" = String, Path, description = "The topic", pattern = "^[A-Za-z0-9._-]{1,64}$"),
        ("revival" = String, Path, description = "The revival's id", pattern = "^[0-9a-f]{16}$"),
    ),
    responses((status = 200, description = "As it is now", body = RevivalAnswer), RevivalProblems),
)]
pub(crate) async fn look(
    State(api): State<Arc<Api>>,
    RevivalPath(topic, id): RevivalPath,
) -> Result<Json<RevivalAnswer>, ApiError> {
    let found = Deadline::from_now().bound(api.store.redrive(id)).await.map_err(ApiError::too_late)??;
    known(found, &topic)
}

/// Stop a revival
///
/// Answered with 200 it revives no more jobs; those that it has revived stay so. One that has
/// ended is answered as it is.
#[utoipa::path(
    delete, path = "/v1/topics/{topic}/revivals/{revival}", tag = "dead", operation_id = "stop_revival",
    params(
        ("topic" = String, Path, description = "The topic", pattern = "^[A-Za-z0-9._-]{1,64}$"),
        ("revival" = String, Path, description = "The revival's id", pattern = "^[0-9a-f]{16}$"),
    ),
    responses((status = 200, description = "As it is then", body = RevivalAnswer), RevivalProblems),
)]
pub(crate) async fn stop(
    State(api): State<Arc<Api>>,
    RevivalPath(topic, id): RevivalPath,
) -> Result<Json<RevivalAnswer>, ApiError> {
    let stopped = Deadline::from_now().bound(async {
        known(api.store.redrive(id).await?, &topic).map(drop)?;
        known(api.store.stop_redrive(id).await?, &topic)
    });
    stopped.await.map_err(ApiError::too_late)?
}

fn known(revival: Option<Redrive>, topic: &Topic) -> Result<Json<RevivalAnswer>, ApiError> {
    let of_topic = revival.filter(|revival| revival.filter.topic == *topic);
    of_topic.map(|revival| Json(revival.into())).ok_or_else(unknown)
}

pub(crate) fn unknown() -> ApiError {
    ApiError::new(
        StatusCode::NOT_FOUND,
        "no such revival of this topic is known, or it ended more than a day ago",
    )
}
