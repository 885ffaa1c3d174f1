//! Assembles the HTTP application: the routes, the OpenAPI document, and the layer around them.

mod observe;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{MethodRouter, get};
use futures_util::FutureExt as _;

use self::observe::Observer;
use crate::access::Gate;
use crate::state::Api;
use crate::{error, openapi, routes};

/// What each request passes.
struct Around {
    observer: Observer,
    gate: Gate,
}

/// The whole API as a service, without a listener.
pub(crate) fn app(api: Arc<Api>, gate: Gate) -> Router {
    let table = table();
    let paths = table.iter().map(|(path, _)| *path).collect();
    let around = Around { observer: Observer { metrics: Arc::clone(&api.metrics), paths }, gate };
    let router = table.into_iter().fold(Router::new(), |router, (path, methods)| router.route(path, methods));
    router
        .fallback(error::not_found)
        .method_not_allowed_fallback(error::method_not_allowed)
        .layer(from_fn_with_state(Arc::new(around), pass))
        .with_state(api)
}

/// Middleware: observes a request, and answers it if the caller may make it. All in one, since each layer costs every
/// request two allocations. It runs inside the router, so that it knows the route.
async fn pass(State(around): State<Arc<Around>>, request: Request, next: Next) -> Response {
    let Around { observer, gate } = &*around;
    let answer = async |request: Request| {
        let (mut parts, body) = request.into_parts();
        match gate.admit(&mut parts) {
            Ok(()) => {
                let answer = AssertUnwindSafe(next.run(Request::from_parts(parts, body)));
                answer.catch_unwind().await.unwrap_or_else(error::panicked)
            }
            Err(refusal) => *refusal,
        }
    };
    observer.observe(request, answer).await
}

/// The API without authentication, for tests.
#[cfg(test)]
pub(crate) fn open(api: Arc<Api>) -> Router {
    let gate = Gate::open(&api);
    app(api, gate)
}

/// Every path and its handlers.
pub(crate) fn table() -> Vec<(&'static str, MethodRouter<Arc<Api>>)> {
    let mut table = routes::table();
    table.push(("/openapi.json", get(openapi::serve)));
    table
}
