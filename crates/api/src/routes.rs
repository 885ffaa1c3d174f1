//! The table of routes, which says for each operation who may call it and whether it is audited, and the handlers
//! behind it, a file for each subject. The handler of an operation declares its name, method, path and answers.

mod archive;
mod audit_log;
mod batch;
mod bulk;
mod bulk_submit;
mod consistency_check;
mod credentials;
mod dead;
mod destination_breakers;
mod destination_limits;
mod destinations;
mod events;
mod export;
mod forecast;
mod history;
mod import;
mod job_actions;
mod jobs;
mod keys;
mod policies;
mod policy_change;
mod quotas;
mod receipts;
mod reserve;
mod schedules;
mod secrets;
mod stats;
mod topic_deletion;
mod topics;

use axum::routing::delete;
use http::Method;
use ringback_core::access::Scope::{Consume, Import, Manage, Read, Submit};
use utoipa::OpenApi;

use self::export::topics as export_topics;
use crate::operation::Need::Root;
use crate::route::Route;

/// Declares the operations: who may call each, whether the audit log has it, and its handler.
macro_rules! operations {
    ($($need:ident $($audited:ident)?: $module:ident::$handler:ident;)+) => {
        /// The part of all operations in the OpenAPI document.
        #[derive(OpenApi)]
        #[openapi(paths($($module::$handler),+))]
        pub(crate) struct Documented;

        fn documented() -> Vec<Route> {
            pastey::paste! {
                vec![$(Route::new::<$module::[<__path_ $handler>], _>($need, $module::$handler)$(.$audited())?),+]
            }
        }
    };
}

operations! {
    Submit: jobs::submit;
    Read: jobs::list;
    Submit: batch::submit_batch;
    Read: jobs::get_job;
    Submit audited: jobs::cancel;
    Submit audited: job_actions::reschedule;
    Read: jobs::attempts;
    Submit audited: job_actions::run;
    Manage audited: job_actions::revive;
    Submit audited: bulk::cancel_jobs;
    Submit audited: bulk::run_jobs;
    Manage audited: bulk::revive_jobs;
    Submit audited: bulk::reschedule_jobs;
    Manage audited: bulk::purge_jobs;
    Read: bulk::list_bulk_operations;
    Read: bulk::get_bulk_operation;
    Submit audited: bulk::stop_bulk_operation;
    Consume: reserve::reserve;
    Consume: receipts::finish;
    Consume: receipts::retry;
    Consume: receipts::bury;
    Consume: receipts::release;
    Consume: receipts::renew;
    Consume: receipts::finish_all;
    Read: topics::list_topics;
    Read: topics::get_topic;
    Manage audited: policies::put_policy;
    Manage audited: policies::patch_policy;
    Manage audited: topic_deletion::delete_topic;
    Manage: secrets::list_secrets;
    Manage audited: secrets::add_secret;
    Manage audited: secrets::delete_secret;
    Manage: credentials::list_credentials;
    Manage audited: credentials::put_credential;
    Manage audited: credentials::delete_credential;
    Manage audited: topics::pause;
    Manage audited: topics::resume;
    Manage audited: topics::unblock;
    Read: destinations::list_destinations;
    Manage audited: destinations::pause_destination;
    Manage audited: destinations::resume_destination;
    Manage audited: destination_breakers::force_breaker;
    Read: destination_limits::get_destination;
    Manage audited: destination_limits::put_limits;
    Manage audited: destination_limits::delete_limits;
    Read: dead::list;
    Manage audited: dead::purge_all;
    Manage audited: dead::purge;
    Manage audited: bulk::revive_dead;
    Read: schedules::list_schedules;
    Submit audited: schedules::put_schedule;
    Read: schedules::get_schedule;
    Submit audited: schedules::delete_schedule;
    Submit audited: schedules::pause_schedule;
    Submit audited: schedules::resume_schedule;
    Submit audited: schedules::run_schedule;
    Read: schedules::next_firings;
    Read: events::events;
    Import: export::export;
    Import: export_topics::export_topics;
    Import: credentials::export_credentials;
    Import: destinations::export_destinations;
    Import: schedules::export_schedules;
    Import audited: import::import;
    Read: stats::stats;
    Read: forecast::forecast;
    Root: keys::list_keys;
    Root audited: keys::add_key;
    Root audited: keys::delete_key;
    Root: quotas::list_quotas;
    Root audited: quotas::put_quota;
    Root audited: quotas::delete_quota;
    Root: archive::archive;
    Root audited: archive::detach_archive;
    Read: history::list_history;
    Manage audited: history::erase_history;
    Read: history::get_history;
    Manage audited: history::replay_history;
    Manage: audit_log::list_audit_log;
    Root: consistency_check::check;
    Root audited: consistency_check::repair;
    Root audited: consistency_check::accept_loss;
    Root audited: consistency_check::accept_clock;
}

pub(crate) fn table() -> Vec<Route> {
    let mut table = documented();
    // A job with this id lies at a path that has a POST of its own.
    let purge_revive = ("purge", Method::DELETE, "/v1/topics/{topic}/dead/revive");
    table.push(Route::undocumented(Manage, purge_revive, delete(dead::purge_job_named_revive)).audited());
    table
}

#[cfg(test)]
mod tests;
