//! The table of routes, and what every answer passes on its way.

mod attempts;
mod audit;
mod batch;
pub(crate) mod dead;
mod events;
mod export;
mod import;
mod jobs;
mod list;
mod many;
mod moves;
mod policies;
pub(crate) mod receipts;
mod reserve;
pub(crate) mod revivals;
pub(crate) mod stats;
mod topics;

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, delete, get, post};
use tower_http::catch_panic::CatchPanicLayer;

use crate::state::Api;
use crate::{error, observe, openapi};

pub(crate) use attempts::__path_attempts;
pub(crate) use audit::{__path_audit, __path_repair};
pub(crate) use batch::__path_submit_batch;
pub(crate) use dead::{
    __path_list as __path_list_dead, __path_purge, __path_purge_all, __path_purge_named_revive,
};
pub(crate) use events::__path_events;
pub(crate) use export::__path_export;
pub(crate) use import::__path_import;
pub(crate) use jobs::{__path_cancel, __path_get_job, __path_submit};
pub(crate) use list::__path_list;
pub(crate) use moves::{__path_reschedule, __path_revive, __path_run};
pub(crate) use policies::{__path_delete_topic, __path_put_policy};
pub(crate) use receipts::{
    __path_bury, __path_finish, __path_finish_all, __path_release, __path_renew, __path_retry,
};
pub(crate) use reserve::__path_reserve;
pub(crate) use revivals::{
    __path_begin as __path_revive_dead, __path_list as __path_list_revivals,
    __path_look as __path_get_revival, __path_stop as __path_stop_revival,
};
pub(crate) use stats::__path_stats;
pub(crate) use topics::{__path_get_topic, __path_list_topics, __path_pause, __path_resume};

/// Every path, as it is matched, documented and counted, and what answers there.
fn routes() -> Vec<(&'static str, MethodRouter<Arc<Api>>)> {
    vec![
        ("/v1/jobs", post(jobs::submit).get(list::list)),
        ("/v1/jobs/batch", post(batch::submit_batch)),
        ("/v1/jobs/{topic}/{id}", get(jobs::get_job).delete(jobs::cancel).patch(moves::reschedule)),
        ("/v1/jobs/{topic}/{id}/attempts", get(attempts::attempts)),
        ("/v1/jobs/{topic}/{id}/run", post(moves::run)),
        ("/v1/jobs/{topic}/{id}/revive", post(moves::revive)),
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
            get(topics::get_topic).put(policies::put_policy).delete(policies::delete_topic),
        ),
        ("/v1/topics/{topic}/pause", post(topics::pause)),
        ("/v1/topics/{topic}/resume", post(topics::resume)),
        ("/v1/topics/{topic}/dead", get(dead::list).delete(dead::purge_all)),
        ("/v1/topics/{topic}/dead/{id}", delete(dead::purge)),
        ("/v1/topics/{topic}/dead/revive", post(revivals::begin).delete(dead::purge_named_revive)),
        ("/v1/topics/{topic}/revivals", get(revivals::list)),
        ("/v1/topics/{topic}/revivals/{revival}", get(revivals::look).delete(revivals::stop)),
        ("/v1/events", get(events::events)),
        ("/v1/export", get(export::export)),
        ("/v1/import", post(import::import)),
        ("/v1/stats", get(stats::stats)),
        ("/v1/audit", get(audit::audit)),
        ("/v1/audit/repair", post(audit::repair)),
        ("/openapi.json", get(openapi::serve)),
    ]
}

/// The paths alone.
pub(crate) static PATHS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| routes().into_iter().map(|(path, _)| path).collect());

pub(crate) fn table(api: Arc<Api>) -> Router {
    let table = routes().into_iter().fold(Router::new(), |table, (path, methods)| table.route(path, methods));
    table
        .fallback(error::not_found)
        .method_not_allowed_fallback(error::method_not_allowed)
        .layer(CatchPanicLayer::custom(error::panicked))
        .layer(from_fn_with_state(Arc::clone(&api), observe::observe))
        .with_state(api)
}

#[cfg(test)]
mod tests;
