//! Assembles the HTTP application: the routes, the OpenAPI document, and the layers around them.

mod host;
mod observe;

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, get};
use tower_http::catch_panic::CatchPanicLayer;

use self::observe::{Observer, observe};
use crate::access::{Gate, admit};
use crate::state::Api;
use crate::{error, openapi, routes};

pub(crate) use self::host::one_host;

/// The whole API as a service, without a listener.
pub(crate) fn app(api: Arc<Api>, gate: Arc<Gate>) -> Router {
    let table = table();
    let paths = table.iter().map(|(path, _)| *path).collect();
    let observer = Arc::new(Observer { metrics: Arc::clone(&api.metrics), paths });
    let router = table.into_iter().fold(Router::new(), |router, (path, methods)| router.route(path, methods));
    router
        .fallback(error::not_found)
        .method_not_allowed_fallback(error::method_not_allowed)
        .layer(from_fn_with_state(gate, admit))
        .layer(CatchPanicLayer::custom(error::panicked))
        .layer(from_fn_with_state(observer, observe))
        .with_state(api)
}

/// The API without authentication, for tests.
#[cfg(test)]
pub(crate) fn open(api: Arc<Api>) -> Router {
    let gate = Gate::open(&api);
    app(api, Arc::new(gate))
}

/// Every path and its handlers.
pub(crate) fn table() -> Vec<(&'static str, MethodRouter<Arc<Api>>)> {
    let mut table = routes::table();
    table.push(("/openapi.json", get(openapi::serve)));
    table
}
