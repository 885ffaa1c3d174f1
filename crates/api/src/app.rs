//! Assembles the HTTP application: the routes, the OpenAPI document, and the layer around them.

mod observe;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, get};
use futures_util::FutureExt as _;
use ringback_service::http_server::Peer;

use self::observe::Observer;
use crate::access::{As, Gate};
use crate::audit_log::AuditLog;
use crate::config::Dashboard;
use crate::extract::trace_of;
use crate::limits::{Activity, AnswerMemory};
use crate::state::Api;
use crate::ui;
use crate::{error, openapi, routes};

/// What each request passes.
struct Around {
    observer: Observer,
    gate: Gate,
    answers: AnswerMemory,
    audit_log: Arc<AuditLog>,
    /// Who is active, where callers have keys.
    activity: Option<Arc<Activity>>,
}

/// The whole API as a service, without a listener.
pub(crate) fn app(api: Arc<Api>, gate: Gate, dashboard: Dashboard) -> Router {
    let mut table = table();
    if dashboard == Dashboard::On {
        table.extend(ui::table());
    }
    let paths = table.iter().map(|(path, _)| *path).collect();
    let around = Around {
        observer: Observer { metrics: Arc::clone(&api.metrics), paths },
        gate,
        answers: AnswerMemory::default(),
        audit_log: Arc::clone(&api.audit_log),
        activity: api.root.is_some().then(|| Arc::clone(&api.activity)),
    };
    let router = table.into_iter().fold(Router::new(), |router, (path, methods)| router.route(path, methods));
    router
        .fallback(error::not_found)
        .method_not_allowed_fallback(error::method_not_allowed)
        .layer(from_fn_with_state(Arc::new(around), pass))
        .with_state(api)
}

/// Middleware: observes a request, answers it if the caller may make it, notes in the audit log what it has changed, and
/// counts its answer until that is read. All in one, since each layer costs every request two allocations. It runs inside the router, so that it knows the route.
async fn pass(State(around): State<Arc<Around>>, request: Request, next: Next) -> Response {
    let Around { observer, gate, answers, audit_log, activity } = &*around;
    let answer = async |request: Request| {
        let (mut parts, body) = request.into_parts();
        if let Err(refusal) = gate.admit(&mut parts) {
            return *refusal;
        }
        let (caller, peer, is_read) = (As::of(&parts), Peer::of_request(&parts), parts.method.is_safe());
        let claimant = || caller.claimant(peer);
        if let Some(activity) = activity {
            activity.note(&caller, peer);
        }
        if !is_read && let Err(refusal) = answers.check(claimant) {
            return refusal.into_response();
        }
        let noted = audit_log.begin(&mut parts, trace_of).await;
        let answer = AssertUnwindSafe(next.run(Request::from_parts(parts, body)));
        let mut answer = answer.catch_unwind().await.unwrap_or_else(error::panicked);
        // What a call that changes something has changed is said.
        if is_read && let Err(ended) = gate.check_again(&caller) {
            return ended.into_response();
        }
        if let Some(call) = noted {
            call.end(&mut answer).await;
        }
        answers.hold(answer, claimant, is_read)
    };
    observer.observe(request, answer).await
}

/// The API without authentication, for tests.
#[cfg(test)]
pub(crate) fn open(api: Arc<Api>) -> Router {
    let gate = Gate::open(&api);
    app(api, gate, Dashboard::On)
}

/// Every path of the API and its handlers. The dashboard is beside it: it is not a part of the API.
pub(crate) fn table() -> Vec<(&'static str, MethodRouter<Arc<Api>>)> {
    let mut table = routes::table();
    table.push(("/openapi.json", get(openapi::serve)));
    table
}
