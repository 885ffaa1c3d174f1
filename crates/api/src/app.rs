//! Assembles the HTTP application: the routes of the API and the dashboard, and the one middleware around them.

mod observe;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use futures_util::FutureExt as _;
use ringback_service::http_server::Peer;

use self::observe::observe;
use crate::access::{Authenticated, Gate};
use crate::audit_log::AuditLog;
use crate::config::Dashboard;
use crate::extract::trace_of;
use crate::limits::{Activity, AnswerMemory};
use crate::metrics::Metrics;
use crate::operation::Operations;
use crate::route::Route;
use crate::state::Api;
use crate::{error, openapi, ui};

/// What each request passes.
struct Around {
    metrics: Arc<Metrics>,
    operations: Arc<Operations>,
    gate: Gate,
    answers: AnswerMemory,
    audit_log: Arc<AuditLog>,
    /// Who is active, where callers have keys.
    activity: Option<Arc<Activity>>,
}

/// The whole API as a service, without a listener.
pub(crate) fn app(api: Arc<Api>, gate: Gate, table: Vec<Route>) -> Router {
    let around = Around {
        metrics: Arc::clone(&api.metrics),
        operations: Arc::clone(&api.operations),
        gate,
        answers: AnswerMemory::default(),
        audit_log: Arc::clone(&api.audit_log),
        activity: api.root.is_some().then(|| Arc::clone(&api.activity)),
    };
    let add = |router: Router<_>, Route { operation, handler }| router.route(&operation.path, handler);
    let router = table.into_iter().fold(Router::new(), add);
    router
        .fallback(error::not_found)
        .method_not_allowed_fallback(error::method_not_allowed)
        .layer(from_fn_with_state(Arc::new(around), pass))
        .with_state(api)
}

/// Middleware: observes a request, refuses it if the caller may not make it or reads too little of its answers, turns a
/// panic into a 500, records a change in the audit log, and counts the memory of the answer until it is read. All in
/// one, since each layer costs every request two allocations. It runs inside the router, so that it knows the route.
async fn pass(State(around): State<Arc<Around>>, request: Request, next: Next) -> Response {
    let Around { metrics, operations, gate, answers, audit_log, activity } = &*around;
    let operation = operations.of(&request);
    let answer = async |request: Request| {
        let (mut parts, body) = request.into_parts();
        if let Err(refusal) = gate.admit(&mut parts, operation) {
            return *refusal;
        }
        let (caller, peer, is_read) =
            (Authenticated::of(&parts), Peer::of_request(&parts), parts.method.is_safe());
        let holder = || caller.holder(peer);
        if let Some(activity) = activity {
            activity.note(&caller, peer);
        }
        if !is_read && let Err(refusal) = answers.check(holder) {
            return refusal.into_response();
        }
        let noted = audit_log.begin(&mut parts, operation, trace_of).await;
        let answer = AssertUnwindSafe(next.run(Request::from_parts(parts, body)));
        let mut answer = answer.catch_unwind().await.unwrap_or_else(error::panicked);
        // A call that has changed something is answered all the same: its caller learns what it has changed.
        if is_read && let Err(ended) = gate.check_again(&caller) {
            return ended.into_response();
        }
        if let Some(call) = noted {
            call.end(&mut answer).await;
        }
        answers.hold(answer, holder, is_read)
    };
    observe(metrics, operation, request, answer).await
}

#[cfg(test)]
pub(crate) fn open(api: Arc<Api>) -> Router {
    let gate = Gate::with(crate::access::Access::open(), &api);
    app(api, gate, table(Dashboard::On))
}

pub(crate) fn table(dashboard: Dashboard) -> Vec<Route> {
    let mut table = openapi::table();
    if dashboard == Dashboard::On {
        table.extend(ui::table());
    }
    table
}
