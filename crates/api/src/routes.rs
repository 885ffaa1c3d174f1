//! The table of routes, and what every answer passes on its way.

mod batch;
mod jobs;
pub(crate) mod stats;

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use tower_http::catch_panic::CatchPanicLayer;

use crate::state::Api;
use crate::{error, observe, openapi};

pub(crate) use batch::__path_submit_batch;
pub(crate) use jobs::{__path_cancel, __path_get_job, __path_submit};
pub(crate) use stats::__path_stats;

/// Every path, as it is matched, documented and counted.
pub(crate) const PATHS: [&str; 5] =
    ["/v1/jobs", "/v1/jobs/batch", "/v1/jobs/{topic}/{id}", "/v1/stats", "/openapi.json"];

pub(crate) fn table(api: Arc<Api>) -> Router {
    let [jobs, batch, job, stats, document] = PATHS;
    Router::new()
        .route(jobs, post(jobs::submit))
        .route(batch, post(batch::submit_batch))
        .route(job, get(jobs::get_job).delete(jobs::cancel))
        .route(stats, get(stats::stats))
        .route(document, get(openapi::serve))
        .fallback(error::not_found)
        .method_not_allowed_fallback(error::method_not_allowed)
        .layer(CatchPanicLayer::custom(error::panicked))
        .layer(from_fn_with_state(Arc::clone(&api), observe::observe))
        .with_state(api)
}

#[cfg(test)]
mod tests;
