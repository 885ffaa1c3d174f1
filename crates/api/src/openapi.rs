//! The OpenAPI 3.1 document, assembled from the handlers of `routes` and the schemas of `schema` and
//! `ringback_core::wire`. What the macros cannot say is added in `complete`.

mod complete;

use std::sync::LazyLock;

use axum::response::IntoResponse;
use bytes::Bytes;
use http::header;
use utoipa::OpenApi;

use self::complete::complete;
use crate::{routes, schema};

/// The root of the document.
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
    paths(
        routes::jobs::submit,
        routes::batch::submit_batch,
        routes::jobs::list,
        routes::jobs::get_job,
        routes::jobs::cancel,
        routes::job_actions::reschedule,
        routes::job_actions::run,
        routes::job_actions::revive,
        routes::policies::put_policy,
        routes::policies::patch_policy,
        routes::topic_deletion::delete_topic,
        routes::reserve::reserve,
        routes::receipts::finish,
        routes::receipts::retry,
        routes::receipts::bury,
        routes::receipts::release,
        routes::receipts::renew,
        routes::receipts::finish_all,
        routes::export::export,
        routes::export::topics::export_topics,
        routes::import::import,
        routes::stats::stats,
        routes::topics::list_topics,
        routes::topics::get_topic,
        routes::topics::pause,
        routes::topics::resume,
        routes::forecast::forecast,
        routes::destinations::list_destinations,
        routes::destinations::pause_destination,
        routes::destinations::resume_destination,
        routes::destinations::export_destinations,
        routes::secrets::add_secret,
        routes::secrets::list_secrets,
        routes::secrets::delete_secret,
        routes::credentials::list_credentials,
        routes::credentials::put_credential,
        routes::credentials::delete_credential,
        routes::credentials::export_credentials,
        routes::schedules::put_schedule,
        routes::schedules::get_schedule,
        routes::schedules::list_schedules,
        routes::schedules::delete_schedule,
        routes::schedules::pause_schedule,
        routes::schedules::resume_schedule,
        routes::schedules::run_schedule,
        routes::schedules::next_firings,
        routes::schedules::export_schedules,
        routes::keys::add_key,
        routes::keys::list_keys,
        routes::keys::delete_key,
        routes::archive::archive,
        routes::archive::detach_archive,
        routes::history::list_history,
        routes::history::get_history,
        routes::history::erase_history,
        routes::history::replay_history,
        routes::quotas::list_quotas,
        routes::quotas::put_quota,
        routes::quotas::delete_quota,
        routes::bulk::cancel_jobs,
        routes::bulk::run_jobs,
        routes::bulk::revive_jobs,
        routes::bulk::reschedule_jobs,
        routes::bulk::purge_jobs,
        routes::bulk::list_bulk_operations,
        routes::bulk::get_bulk_operation,
        routes::bulk::stop_bulk_operation,
        routes::dead::list,
        routes::dead::purge_all,
        routes::dead::purge,
        routes::dead::purge_job_named_revive,
        routes::redrives::begin,
        routes::redrives::list,
        routes::redrives::get,
        routes::redrives::stop,
        routes::audit_log::list_audit_log,
        routes::consistency_audit::audit,
        routes::consistency_audit::repair,
        routes::consistency_audit::accept_loss,
        routes::consistency_audit::accept_clock,
        routes::jobs::attempts,
        routes::events::events,
        serve,
    ),
    components(schemas(
        ringback_core::wire::Problem,
        ringback_core::wire::NoticeBody,
        schema::TopicName,
        schema::JobName,
        schema::ReasonText,
        schema::Time,
        schema::FriendlyDuration,
        schema::IdempotencyKeyText,
        schema::ReceiptText,
        schema::RevivalId,
        schema::BulkId,
        schema::HostAndPort,
        schema::IdPrefix,
        schema::ErrorPart,
        schema::SecretName,
        schema::KeyName,
        schema::CredentialText,
        schema::QuotaName,
        schema::ScheduleName,
        schema::ScheduleCursor,
        schema::TenantName,
        schema::JobCursor,
        schema::TopicCursor,
        schema::DestinationText,
        schema::DestinationCursor,
        schema::DeletionCursor,
        schema::DeadPosition,
        schema::PurgePosition,
        schema::HistoryCursor,
        schema::AuditLogCursor,
        schema::AuditLogOperation,
        schema::CallerText,
        schema::HostText,
        schema::EndState,
        schema::IncludedInHistory,
        schema::IncludedPart,
        schema::PendingState,
        schema::Included,
        schema::PutSource,
        schema::EventKinds,
        schema::EventKindName,
    )),
    tags(
        (name = "jobs", description = "Submit, get, list, reschedule, run, revive and cancel jobs; export and import them"),
        (name = "pull", description = "Reserve jobs that have no URL, and settle them"),
        (name = "topics", description = "List and get topics; set their policies, the secrets that sign their callbacks and the credentials that these carry; pause, resume and delete them; export what is set for them"),
        (name = "destinations", description = "List, pause and resume the hosts that callbacks go to; export the pauses"),
        (name = "schedules", description = "Put, list and delete schedules, which submit a job again and again; pause and resume them, and fire them now"),
        (name = "bulk", description = "Cancel, run, revive, reschedule or purge all jobs that fit a filter; count them before, follow the progress, stop it"),
        (name = "dead", description = "List, purge and revive the dead jobs of a topic"),
        (name = "keys", description = "The keys of callers and the quotas of tenants, for the root key alone"),
        (name = "history", description = "The ends of jobs that the archive has kept: list, erase and replay them"),
        (name = "audit log", description = "Who has changed what by a call"),
        (name = "events", description = "Live events of jobs"),
        (name = "stats", description = "Counts and lateness; the archive's outbox; the consistency audit"),
        (name = "document", description = "This document"),
    ),
)]
pub struct Document;

static TEXT: LazyLock<Bytes> = LazyLock::new(|| {
    let document = serde_json::to_value(Document::openapi()).expect("plain data always serialises");
    complete(document).to_string().into()
});

/// This document
#[utoipa::path(
    get, path = "/openapi.json", tag = "document", operation_id = "openapi",
    responses((status = 200, description = "OpenAPI 3.1", body = Object, content_type = "application/json")),
)]
pub(crate) async fn serve() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], TEXT.clone())
}

#[cfg(test)]
mod tests;
