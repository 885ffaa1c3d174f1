//! The OpenAPI 3.1 document, assembled from the handlers of `routes` and the schemas of `schema` and
//! `ringback_wire`. What the macros cannot say is added in `complete`.

mod complete;

use std::sync::LazyLock;

use axum::response::IntoResponse;
use bytes::Bytes;
use http::header;
use utoipa::OpenApi;

use self::complete::complete;
use crate::operation::Need;
use crate::route::Route;
use crate::{routes, schema};

/// The root of the document, without the operations of `routes`.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Ringback",
        description = "Keeps jobs until they are due and then delivers each one to its callback URL, or to a consumer that reserves it.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    servers((
        url = "http://{host}:{port}",
        description = "By default on this machine only, and without keys",
        variables(
            ("host" = (default = "127.0.0.1", description = "The address of RINGBACK_API_LISTEN")),
            ("port" = (default = "7411", description = "The port of RINGBACK_API_LISTEN")),
        ),
    )),
    paths(serve),
    components(schemas(
        ringback_wire::Problem,
        ringback_wire::NoticeBody,
        schema::TopicName,
        schema::JobIdText,
        schema::DeadReason,
        schema::Time,
        schema::FriendlyDuration,
        schema::IdempotencyKeyText,
        schema::ReceiptText,
        schema::BulkId,
        schema::HostAndPort,
        schema::IdPrefix,
        schema::ErrorPart,
        schema::SecretIdText,
        schema::KeyIdText,
        schema::CredentialNameText,
        schema::QuotaName,
        schema::ScheduleIdText,
        schema::ScheduleCursor,
        schema::TenantName,
        schema::JobCursor,
        schema::TopicCursor,
        schema::DestinationCursor,
        schema::DeletionCursor,
        schema::DeadCursorText,
        schema::PurgeCursorText,
        schema::HistoryCursor,
        schema::AuditLogCursor,
        schema::AuditLogOperation,
        schema::CallerText,
        schema::HostText,
        schema::HistoryState,
        schema::HistoryParts,
        schema::HistoryPart,
        schema::PendingState,
        schema::IncludedInJob,
        schema::RestoreSource,
        schema::EventKinds,
        schema::EventKindName,
    )),
    tags(
        (name = "jobs", description = "Submit, get, list, reschedule, run, revive and cancel jobs; export and import them"),
        (name = "pull", description = "Reserve jobs that have no URL, and settle them"),
        (name = "topics", description = "List and get topics; set their policies, the secrets that sign their callbacks and the credentials that these carry; pause, resume and delete them; export what is set for them"),
        (name = "destinations", description = "List, show, pause, resume and limit the hosts that callbacks go to; export the pauses"),
        (name = "schedules", description = "Put, list and delete schedules, which submit a job again and again; pause and resume them, and fire them now"),
        (name = "bulk", description = "Cancel, run, revive, reschedule or purge all jobs that fit a filter; count them before, follow the progress, stop it"),
        (name = "dead", description = "List, purge and revive the dead jobs of a topic"),
        (name = "keys", description = "The keys of callers and the quotas of tenants, for the root key alone"),
        (name = "history", description = "The ended jobs that the archive has kept: list, erase and replay them"),
        (name = "audit log", description = "Who has changed what by a call"),
        (name = "events", description = "Live events of jobs"),
        (name = "stats", description = "Counts and lateness; the archive's outbox; the consistency check"),
        (name = "document", description = "This document"),
    ),
)]
struct Document;

static TEXT: LazyLock<Bytes> = LazyLock::new(|| {
    let table = table();
    let document = Document::openapi().merge_from(routes::Documented::openapi());
    let document = serde_json::to_value(document).expect("plain data always serialises");
    let operations = table.into_iter().map(|route| route.operation).collect();
    complete(document, &operations).to_string().into()
});

/// The document as JSON.
#[must_use]
pub fn document() -> Bytes {
    TEXT.clone()
}

/// All operations of the API with their handlers, without the routes of the dashboard.
pub(crate) fn table() -> Vec<Route> {
    let mut table = routes::table();
    table.push(Route::new::<__path_serve, _>(Need::Nothing, serve));
    table
}

/// This document
#[utoipa::path(
    get, path = "/openapi.json", tag = "document", operation_id = "openapi",
    responses((status = 200, description = "OpenAPI 3.1", body = Object, content_type = "application/json")),
)]
pub(crate) async fn serve() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], document())
}

#[cfg(test)]
mod tests;
