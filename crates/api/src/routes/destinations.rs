//! Destinations: lists them, pauses and resumes them, and exports the pauses. `destination_limits` shows one, with its
//! limits, and changes these.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use ringback_admission::Principal;
use ringback_core::destination::{Destination, DestinationPause};
use ringback_core::job::TenantScope;
use ringback_core::store_types::{
    DestinationPage, DestinationQuery, LaneSpan, LimitTarget, MAX_PAUSED_DESTINATIONS,
    MAX_PAUSED_DESTINATIONS_OF_TENANT, PauseLimit,
};
use ringback_service::http_server::Peer;
use ringback_wire::{DestinationLine, DestinationPauseResponse, DestinationsResponse};
use serde_json::json;

use super::export::{turn, whole};
use crate::access::Authenticated;
use crate::audit_log::{Audited, Change};
use crate::error::{ApiError, JsonResult};
use crate::extract::{DestinationPath, NoBody, Query};
use crate::limits::Deadline;
use crate::schema::{
    DestinationCursor, DestinationParams, EmptyRequest, NoBodyConflictProblems, NoBodyProblems,
    QueryProblems, StoreProblems,
};
use crate::state::{Api, ApiState};

/// List destinations
///
/// Lists the origins of callback URLs for which there are jobs, with the number of jobs in each state, and paused or
/// limited destinations without jobs, sorted by host, port and scheme. The counts are sums over all topics that the
/// caller may see. `failing` says since when callbacks to an origin fail, and how. `limited_by` has the limits of its
/// host and of its port that the caller has set. `next` is null on the last page. Each page reads the counts of all
/// origins of all topics: ask for large pages.
#[utoipa::path(
    get, path = "/v1/destinations", tag = "destinations", operation_id = "list_destinations",
    params(
        ("failing" = Option<bool>, Query, description = "`true` for those that fail alone"),
        ("cursor" = Option<DestinationCursor>, Query, description = "`next` of the previous page; opaque"),
        ("limit" = Option<usize>, Query, description = "The most destinations of the page; 100 by default", example = 100, minimum = 1, maximum = 1000),
    ),
    responses((status = 200, description = "A page", body = DestinationsResponse), QueryProblems),
)]
pub(crate) async fn list_destinations(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    peer: Peer,
    Query(query): Query<DestinationQuery>,
) -> JsonResult<DestinationsResponse> {
    let deadline = Deadline::from_now();
    let _turn = deadline.bound(api.scans.wait(caller.holder(peer))).await?;
    let spans = spans(&caller);
    let page = api.store.destinations(&spans, caller.reach(), &query);
    let page = deadline.bound(page).await??;
    let names = names(&page, caller.reach());
    let limits = deadline.bound(api.store.limits(&names)).await??;
    Ok(Json(DestinationsResponse::new(&page, &limits, caller.reach())))
}

/// Pause a destination
///
/// Stops callbacks to a host, or to one port of it, with any scheme: after the answer no job is sent there. Jobs can
/// still be submitted, cancelled and so on, and callbacks that have begun are settled. A destination without jobs can
/// be paused too. Pausing it again changes nothing. With the key of a tenant the pause is for the jobs of that tenant,
/// with the root key, or without one, for those of all.
#[utoipa::path(
    post, path = "/v1/destinations/{host}/pause", tag = "destinations", operation_id = "pause_destination",
    params(DestinationParams),
    request_body(content = EmptyRequest, extensions(("x-may-be-left-out" = json!(true)))),
    responses(
        (status = 200, description = "The destination, paused", body = DestinationPauseResponse),
        NoBodyConflictProblems,
    ),
)]
pub(crate) async fn pause_destination(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    DestinationPath(destination): DestinationPath,
    NoBody(deadline): NoBody,
) -> Audited<DestinationPauseResponse> {
    let pause = of_caller(&caller, destination, FOR_SOME_TOPICS)?;
    let made = async {
        deadline.bound(api.store.pause_destination(&pause)).await??.map_err(|limit| too_many(limit, "paused"))
    };
    change(&api, &caller, &pause.destination, deadline, made).await
}

/// Resume a destination
///
/// Makes callbacks to it again. Resuming a destination that is not paused changes nothing. A pause of all ports and one
/// of a single port are two pauses, which end each by itself; so are those of a tenant and of the operator.
#[utoipa::path(
    post, path = "/v1/destinations/{host}/resume", tag = "destinations", operation_id = "resume_destination",
    params(DestinationParams),
    request_body(content = EmptyRequest, extensions(("x-may-be-left-out" = json!(true)))),
    responses(
        (status = 200, description = "The destination; paused if another pause holds it", body = DestinationPauseResponse),
        NoBodyProblems,
    ),
)]
pub(crate) async fn resume_destination(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    DestinationPath(destination): DestinationPath,
    NoBody(deadline): NoBody,
) -> Audited<DestinationPauseResponse> {
    let pause = of_caller(&caller, destination, FOR_SOME_TOPICS)?;
    let made = async { Ok(deadline.bound(api.store.resume_destination(&pause)).await?.map(drop)?) };
    change(&api, &caller, &pause.destination, deadline, made).await
}

/// Export paused destinations
///
/// Lists the pauses of destinations, a line of JSON each, so that they can be paused elsewhere. With the root key,
/// those of all tenants too. Limits of destinations are not exported.
#[utoipa::path(
    get, path = "/v1/export/destinations", tag = "destinations", operation_id = "export_destinations",
    responses(
        (status = 200, description = "A line per pause", body = DestinationLine, content_type = "application/x-ndjson"),
        StoreProblems,
    ),
)]
pub(crate) async fn export_destinations(
    State(api): ApiState,
    Authenticated(caller): Authenticated,
    peer: Peer,
) -> Result<Response, ApiError> {
    let _turn = turn(&api, caller.holder(peer))?;
    let pauses = Deadline::from_now().bound(api.store.paused_destinations()).await??;
    let reach = caller.reach();
    // A key for some topics ends none of them.
    let is_reached = |pause: &&DestinationPause| {
        caller.topics().is_empty() && (*reach == TenantScope::All || pause.is_of(reach))
    };
    Ok(whole(pauses.iter().filter(is_reached).map(DestinationLine::new)))
}

pub(super) fn spans(caller: &Principal) -> Vec<LaneSpan> {
    match caller.topics() {
        [] => vec![LaneSpan::Of(caller.reach().clone())],
        topics => topics.iter().cloned().map(LaneSpan::Topic).collect(),
    }
}

/// The names under which this scope may have limits of the destinations of a page: their hosts, and these with their
/// ports.
fn names(page: &DestinationPage, scope: &TenantScope) -> Vec<LimitTarget> {
    let texts = page.items.keys().flat_map(|place| {
        // A pause of all ports has the port 0, with which no destination can be parsed.
        [place.host.to_string(), format!("{}:{}", place.host, place.port)]
    });
    let texts: BTreeSet<_> = texts.collect();
    let destinations = texts.iter().filter_map(|text| Destination::parse(text).ok());
    let names = destinations.map(|destination| DestinationPause::new(scope, destination));
    names.map(LimitTarget::Destination).collect()
}

/// Awaits `made`, a change of the pauses of a destination. Answers with the pauses after it; the entry of the audit log
/// also has those before it.
async fn change(
    api: &Api,
    caller: &Principal,
    destination: &Destination,
    deadline: Deadline,
    made: impl Future<Output = Result<(), ApiError>>,
) -> Audited<DestinationPauseResponse> {
    let before = find(api, caller, destination, deadline).await?;
    made.await?;
    let answer = find(api, caller, destination, deadline).await?;
    let change = Change::default().before(json!({"pauses": before.pauses}));
    Ok((change.after(json!({"pauses": answer.pauses})), Json(answer)))
}

async fn find(
    api: &Api,
    caller: &Principal,
    destination: &Destination,
    deadline: Deadline,
) -> Result<DestinationPauseResponse, ApiError> {
    let pauses = deadline.bound(api.store.paused_destinations()).await??;
    Ok(DestinationPauseResponse::new(destination, &pauses, caller.reach()))
}

/// Why a key for some topics may not pause a destination.
const FOR_SOME_TOPICS: &str = "the key is for some topics, and a pause of a destination is for all topics of a tenant; pause topics, or use a key without `topics`";

/// The name of a pause or limit of a destination: for the jobs of the caller's tenant, or of all.
///
/// # Errors
/// 403 with `refusal` for a key that is limited to some topics, since the pause or limit would be for all topics.
pub(super) fn of_caller(
    caller: &Principal,
    destination: Destination,
    refusal: &'static str,
) -> Result<DestinationPause, ApiError> {
    if caller.topics().is_empty() {
        return Ok(DestinationPause::new(caller.reach(), destination));
    }
    Err(ApiError::new(StatusCode::FORBIDDEN, refusal))
}

/// 409: as many destinations are `done`, which is `paused` or `forced closed`, as there may be.
pub(super) fn too_many(limit: PauseLimit, done: &str) -> ApiError {
    let detail = match limit {
        PauseLimit::Installation => format!(
            "{MAX_PAUSED_DESTINATIONS} destinations are {done}, which is the limit, and this would be one more; nothing was changed: resume or reset others first (GET /v1/destinations lists them)"
        ),
        PauseLimit::Tenant => format!(
            "the tenant has as many destinations that are {done} as it may: {MAX_PAUSED_DESTINATIONS_OF_TENANT}, and at most half of what other tenants leave; nothing was changed: resume or reset others first (GET /v1/destinations lists them)"
        ),
    };
    ApiError::new(StatusCode::CONFLICT, detail)
}
