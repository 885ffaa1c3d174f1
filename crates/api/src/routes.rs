//! The table of routes and the handlers behind them.

pub(crate) mod archive;
pub(crate) mod audit_log;
pub(crate) mod batch;
pub(crate) mod bulk;
mod bulk_submit;
pub(crate) mod consistency_audit;
pub(crate) mod credentials;
pub(crate) mod dead;
pub(crate) mod destinations;
pub(crate) mod events;
pub(crate) mod export;
pub(crate) mod forecast;
pub(crate) mod history;
pub(crate) mod import;
pub(crate) mod job_actions;
pub(crate) mod jobs;
pub(crate) mod keys;
pub(crate) mod policies;
mod policy_change;
pub(crate) mod quotas;
pub(crate) mod receipts;
pub(crate) mod redrives;
pub(crate) mod reserve;
pub(crate) mod schedules;
pub(crate) mod secrets;
pub(crate) mod stats;
pub(crate) mod topic_deletion;
pub(crate) mod topics;

use std::sync::Arc;

use axum::routing::{MethodRouter, delete, get, post, put};

use crate::state::Api;

/// Each path with its handlers. A path is also a label of the metrics.
pub(crate) fn table() -> Vec<(&'static str, MethodRouter<Arc<Api>>)> {
    let mut all = one_by_one();
    all.extend([
        ("/v1/jobs/cancel", post(bulk::cancel_jobs)),
        ("/v1/jobs/run", post(bulk::run_jobs)),
        ("/v1/jobs/revive", post(bulk::revive_jobs)),
        ("/v1/jobs/reschedule", post(bulk::reschedule_jobs)),
        ("/v1/jobs/purge", post(bulk::purge_jobs)),
        ("/v1/bulk", get(bulk::list_bulk_operations)),
        ("/v1/bulk/{bulk}", get(bulk::get_bulk_operation).delete(bulk::stop_bulk_operation)),
    ]);
    all
}

/// All but those of bulk operations.
#[expect(clippy::too_many_lines, reason = "a table, with a line for each path")]
fn one_by_one() -> Vec<(&'static str, MethodRouter<Arc<Api>>)> {
    vec![
        ("/v1/jobs", post(jobs::submit).get(jobs::list)),
        ("/v1/jobs/batch", post(batch::submit_batch)),
        ("/v1/jobs/{topic}/{id}", get(jobs::get_job).delete(jobs::cancel).patch(job_actions::reschedule)),
        ("/v1/jobs/{topic}/{id}/attempts", get(jobs::attempts)),
        ("/v1/jobs/{topic}/{id}/run", post(job_actions::run)),
        ("/v1/jobs/{topic}/{id}/revive", post(job_actions::revive)),
        ("/v1/topics/{topic}/reserve", post(reserve::reserve)),
        ("/v1/receipts/{receipt}/finish", post(receipts::finish)),
        ("/v1/receipts/{receipt}/retry", post(receipts::retry)),
        ("/v1/receipts/{receipt}/bury", post(receipts::bury)),
        ("/v1/receipts/{receipt}/release", post(receipts::release)),
        ("/v1/receipts/{receipt}/renew", post(receipts::renew)),
        ("/v1/receipts/finish", post(receipts::finish_all)),
        ("/v1/topics", get(topics::list_topics)),
        (
            "/v1/topics/{topic}",
            get(topics::get_topic)
                .put(policies::put_policy)
                .patch(policies::patch_policy)
                .delete(topic_deletion::delete_topic),
        ),
        ("/v1/topics/{topic}/secrets", get(secrets::list_secrets).post(secrets::add_secret)),
        ("/v1/topics/{topic}/secrets/{secret}", delete(secrets::delete_secret)),
        ("/v1/credentials", get(credentials::list_credentials)),
        (
            "/v1/credentials/{credential}",
            put(credentials::put_credential).delete(credentials::delete_credential),
        ),
        ("/v1/topics/{topic}/pause", post(topics::pause)),
        ("/v1/topics/{topic}/resume", post(topics::resume)),
        ("/v1/destinations", get(destinations::list_destinations)),
        ("/v1/destinations/{host}/pause", post(destinations::pause_destination)),
        ("/v1/destinations/{host}/resume", post(destinations::resume_destination)),
        ("/v1/topics/{topic}/dead", get(dead::list).delete(dead::purge_all)),
        ("/v1/topics/{topic}/dead/{id}", delete(dead::purge)),
        ("/v1/topics/{topic}/dead/revive", post(redrives::begin).delete(dead::purge_job_named_revive)),
        ("/v1/topics/{topic}/revivals", get(redrives::list)),
        ("/v1/topics/{topic}/revivals/{revival}", get(redrives::get).delete(redrives::stop)),
        ("/v1/schedules", get(schedules::list_schedules)),
        (
            "/v1/schedules/{id}",
            put(schedules::put_schedule).get(schedules::get_schedule).delete(schedules::delete_schedule),
        ),
        ("/v1/schedules/{id}/pause", post(schedules::pause_schedule)),
        ("/v1/schedules/{id}/resume", post(schedules::resume_schedule)),
        ("/v1/schedules/{id}/run", post(schedules::run_schedule)),
        ("/v1/schedules/{id}/next", get(schedules::next_firings)),
        ("/v1/events", get(events::events)),
        ("/v1/export", get(export::export)),
        ("/v1/export/topics", get(export::topics::export_topics)),
        ("/v1/export/credentials", get(credentials::export_credentials)),
        ("/v1/export/destinations", get(destinations::export_destinations)),
        ("/v1/export/schedules", get(schedules::export_schedules)),
        ("/v1/import", post(import::import)),
        ("/v1/stats", get(stats::stats)),
        ("/v1/forecast", get(forecast::forecast)),
        ("/v1/keys", get(keys::list_keys).post(keys::add_key)),
        ("/v1/keys/{key}", delete(keys::delete_key)),
        ("/v1/quotas", get(quotas::list_quotas)),
        ("/v1/quotas/{tenant}", put(quotas::put_quota).delete(quotas::delete_quota)),
        ("/v1/archive", get(archive::archive).delete(archive::detach_archive)),
        ("/v1/history", get(history::list_history).delete(history::erase_history)),
        ("/v1/history/{topic}/{id}", get(history::get_history)),
        ("/v1/history/replay", post(history::replay_history)),
        ("/v1/audit-log", get(audit_log::list_audit_log)),
        ("/v1/audit", get(consistency_audit::audit)),
        ("/v1/audit/repair", post(consistency_audit::repair)),
        ("/v1/audit/accept-loss", post(consistency_audit::accept_loss)),
        ("/v1/audit/accept-clock", post(consistency_audit::accept_clock)),
    ]
}

#[cfg(test)]
mod tests;
