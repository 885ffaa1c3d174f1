//! The admin port with `/healthz`, `/readyz` and `/metrics`, for orchestrators and Prometheus; and [`Health`], the
//! readiness that `/readyz` shows. The port shows no jobs and changes nothing.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus::{Registry, TextEncoder};
use serde_json::json;
use tokio::net::TcpListener;

use crate::http_server::{self, Connections, Tls};
use crate::scrape::Scrapes;
use crate::shutdown::Shutdown;

/// The connections to the port at a time: enough for probes and scrapers.
const MAX_CONNECTIONS: usize = 256;

/// The readiness of the process: a set of named checks. Clones share one state.
#[derive(Clone, Debug)]
pub struct Health {
    checks: Arc<Mutex<BTreeMap<String, Check>>>,
    shutdown: Shutdown,
}

#[derive(Debug)]
struct Check {
    ready: bool,
    detail: String,
}

impl Health {
    /// Creates a state without checks, which is not ready. Once `shutdown` is announced or has begun it is never ready.
    #[must_use]
    pub fn new(shutdown: &Shutdown) -> Self {
        Self { checks: Arc::default(), shutdown: shutdown.clone() }
    }

    /// Sets a check. `detail` is public on `/readyz`, so it must not contain secrets.
    pub fn set(&self, check: &str, ready: bool, detail: impl Into<String>) {
        self.lock().insert(check.to_owned(), Check { ready, detail: detail.into() });
    }

    /// Returns true if there is a check, all checks are ready, and the process is not shutting down.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let checks = self.lock();
        !self.shutdown.is_near() && !checks.is_empty() && checks.values().all(|check| check.ready)
    }

    fn report(&self) -> serde_json::Value {
        let ready = self.is_ready();
        let mut checks: serde_json::Map<_, _> = self
            .lock()
            .iter()
            .map(|(name, check)| (name.clone(), json!({"ready": check.ready, "detail": check.detail})))
            .collect();
        if self.shutdown.is_near() {
            checks.insert("shutdown".to_owned(), json!({"ready": false, "detail": "shutting down"}));
        }
        json!({"ready": ready, "checks": checks})
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Check>> {
        self.checks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Binds the admin port.
///
/// # Errors
/// When the address cannot be bound; the message names it.
pub(crate) async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("cannot listen on the admin address {address}"))
}

/// Serves the admin port until the future is dropped, also during the shutdown of the process.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: Option<Tls>,
    health: Health,
    registry: Registry,
    scrapes: Scrapes,
) {
    // It answers during the shutdown of the process too.
    let until_dropped = Shutdown::new(Duration::ZERO);
    let app = router(health, registry, scrapes);
    http_server::serve(listener, app, Connections::fair(MAX_CONNECTIONS), tls, until_dropped).await;
}

/// The routes of the admin port.
fn router(health: Health, registry: Registry, scrapes: Scrapes) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok"))
        .route("/readyz", get(readyz).with_state(health))
        .route("/metrics", get(metrics).with_state((registry, scrapes)))
}

async fn readyz(State(health): State<Health>) -> Response {
    let report = health.report();
    let status = if report["ready"] == true { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, axum::Json(report)).into_response()
}

async fn metrics(State((registry, scrapes)): State<(Registry, Scrapes)>) -> Response {
    let read = scrapes.read().await;
    let families: Vec<_> = registry.gather().into_iter().chain(read).collect();
    match TextEncoder::new().encode_to_string(&families) {
        Ok(text) => ([(header::CONTENT_TYPE, prometheus::TEXT_FORMAT)], text).into_response(),
        Err(error) => {
            tracing::error!(error = %error, "cannot encode the metrics");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use axum::http::Request;
    use opentelemetry::metrics::MeterProvider as _;
    use tower::ServiceExt as _;

    use super::*;
    use crate::telemetry;

    fn health() -> (Health, Shutdown) {
        let shutdown = Shutdown::new(Duration::from_secs(30));
        (Health::new(&shutdown), shutdown)
    }

    async fn ask(health: &Health, registry: &Registry, path: &str) -> (StatusCode, String) {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let router = router(health.clone(), registry.clone(), Scrapes::default());
        let response = router.oneshot(request).await.unwrap();
        let status = response.status();
        let body = to_bytes(response.into_body(), 64 * 1024).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    async fn ready(health: &Health) -> (StatusCode, String) {
        ask(health, &Registry::new(), "/readyz").await
    }

    #[tokio::test]
    async fn a_process_without_checks_is_not_ready_but_alive() {
        let (health, _) = health();
        assert_eq!(
            ready(&health).await,
            (StatusCode::SERVICE_UNAVAILABLE, r#"{"checks":{},"ready":false}"#.to_owned())
        );
        assert_eq!(ask(&health, &Registry::new(), "/healthz").await, (StatusCode::OK, "ok".to_owned()));
    }

    #[tokio::test]
    async fn it_is_ready_when_every_check_is() {
        let (health, _) = health();
        health.set("store", true, "redis, everysec");
        health.set("shards", false, "none held yet");
        assert_eq!(ready(&health).await.0, StatusCode::SERVICE_UNAVAILABLE);
        health.clone().set("shards", true, "8 of 8");
        let body = r#"{"checks":{"shards":{"detail":"8 of 8","ready":true},"store":{"detail":"redis, everysec","ready":true}},"ready":true}"#;
        assert_eq!(ready(&health).await, (StatusCode::OK, body.to_owned()));
    }

    #[tokio::test]
    async fn a_process_that_shuts_down_is_not_ready() {
        let (health, shutdown) = health();
        health.set("store", true, "");
        assert!(health.is_ready());
        shutdown.begin();
        let (status, body) = ready(&health).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(body.contains(r#""shutdown":{"detail":"shutting down","ready":false}"#), "{body}");
    }

    #[tokio::test]
    async fn a_process_is_not_ready_from_the_moment_it_announces_its_shutdown() {
        let (health, shutdown) = health();
        health.set("store", true, "");
        shutdown.announce();
        assert_eq!(ready(&health).await.0, StatusCode::SERVICE_UNAVAILABLE);
        assert!(!shutdown.is_stopping(), "it works on");
    }

    #[tokio::test]
    async fn metrics_are_shown_as_prometheus_text() {
        let (registry, provider) = telemetry::metrics().unwrap();
        provider.meter("ringback-test").u64_counter("ringback_things_total").build().add(3, &[]);
        let (status, body) = ask(&health().0, &registry, "/metrics").await;
        assert_eq!(status, StatusCode::OK);
        assert!(body.contains("\nringback_things_total 3\n"), "{body}");
    }

    #[tokio::test]
    async fn an_address_in_use_is_named() {
        let first = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        let address = first.local_addr().unwrap();
        let error = format!("{:#}", bind(address).await.unwrap_err());
        assert!(
            error.starts_with(&format!(
                "cannot listen on the admin address {address}: Address already in use"
            )),
            "{error}"
        );
    }
}
