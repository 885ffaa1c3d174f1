//! The table of routes, and what every answer passes on its way.

mod audit;
mod batch;
mod export;
mod import;
mod jobs;
mod list;
mod many;
mod moves;
pub(crate) mod receipts;
mod reserve;
pub(crate) mod stats;

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use tower_http::catch_panic::CatchPanicLayer;

use crate::state::Api;
use crate::{error, observe, openapi};

pub(crate) use audit::{__path_audit, __path_repair};
pub(crate) use batch::__path_submit_batch;
pub(crate) use export::__path_export;
pub(crate) use import::__path_import;
pub(crate) use jobs::{__path_cancel, __path_get_job, __path_submit};
pub(crate) use list::__path_list;
pub(crate) use moves::{__path_reschedule, __path_revive, __path_run};
pub(crate) use receipts::{
    __path_bury, __path_finish, __path_finish_all, __path_release, __path_renew, __path_retry,
};
pub(crate) use reserve::__path_reserve;
pub(crate) use stats::__path_stats;

/// Every path, as it is matched, documented and counted.
pub(crate) const PATHS: [&str; 18] = [
    "/v1/jobs",
    "/v1/jobs/batch",
    "/v1/jobs/{topic}/{id}",
    "/v1/jobs/{topic}/{id}/run",
    "/v1/jobs/{topic}/{id}/revive",
    "/v1/topics/{topic}/reserve",
    "/v1/receipts/{receipt}/finish",
    "/v1/receipts/{receipt}/retry",
    "/v1/receipts/{receipt}/bury",
    "/v1/receipts/{receipt}/release",
    "/v1/receipts/{receipt}/renew",
    "/v1/receipts/finish",
    "/v1/export",
    "/v1/import",
    "/v1/stats",
    "/v1/audit",
    "/v1/audit/repair",
    "/openapi.json",
];

pub(crate) fn table(api: Arc<Api>) -> Router {
    let [jobs, batch, job, run, revive, wanted, words @ .., export, import, stats, books, repair, document] =
        PATHS;
    let [finish, retry, bury, release, renew, finish_all] = words;
    Router::new()
        .route(jobs, post(jobs::submit).get(list::list))
        .route(batch, post(batch::submit_batch))
        .route(job, get(jobs::get_job).delete(jobs::cancel).patch(moves::reschedule))
        .route(run, post(moves::run))
        .route(revive, post(moves::revive))
        .route(wanted, post(reserve::reserve))
        .route(finish, post(receipts::finish))
        .route(retry, post(receipts::retry))
        .route(bury, post(receipts::bury))
        .route(release, post(receipts::release))
        .route(renew, post(receipts::renew))
        .route(finish_all, post(receipts::finish_all))
        .route(export, get(export::export))
        .route(import, post(import::import))
        .route(stats, get(stats::stats))
        .route(books, get(audit::audit))
        .route(repair, post(audit::repair))
        .route(document, get(openapi::serve))
        .fallback(error::not_found)
        .method_not_allowed_fallback(error::method_not_allowed)
        .layer(CatchPanicLayer::custom(error::panicked))
        .layer(from_fn_with_state(Arc::clone(&api), observe::observe))
        .with_state(api)
}

#[cfg(test)]
mod tests;
