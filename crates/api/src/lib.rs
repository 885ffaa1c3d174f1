//! The HTTP API: parses requests, calls the store, and answers only after the store has accepted.
//!
//! `app` puts the routes and the layers around them together, `access` says who may call. A handler of `routes` gets
//! its input from the extractors of `extract` and the shared `Api` of `state`. Submits and imports that
//! `ringback-admission` accepts go through `submit_queues`, reserves through `pull`, event streams through `events`,
//! queries of the archive through `history`. `audit_log` notes which calls have changed what. `ui` serves the
//! dashboard, which calls this API. `whole_jobs` limits answers that show whole jobs. `resealing` keeps secrets sealed
//! with the newest master key. `limits` bounds memory and time, `error` turns failures into problem details, and
//! `schema` describes the requests for `openapi`. The process keeps no state that another API process would miss.

mod access;
mod app;
mod audit_log;
mod config;
mod error;
mod events;
mod extract;
mod history;
mod limits;
mod metrics;
pub mod openapi;
mod operation;
mod paging;
mod pull;
mod resealing;
mod route;
mod routes;
mod schema;
mod state;
mod submit_queues;
mod ui;
mod whole_jobs;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use ringback_core::store_types::StoreError;
use ringback_service::dependency::Dependency;
use ringback_service::http_server::{self, Connections};
use ringback_service::{Context, Health, Shutdown, Tasks, open_files, random};
use ringback_store::{Retries, SharedConfig, Store};
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};

pub use crate::access::Access;
use crate::access::{Gate, KeyUses};
pub use crate::config::{Config, Dashboard};
pub use crate::metrics::METRICS;
use crate::state::Api;

/// The name of the task that reads the topic policies, and of its readiness check.
const POLICIES: &str = "api's policies";
/// How long connections wait at the start for the process to be ready. Then they are served, so that clients learn why
/// it is not.
const READY_WITHIN: Duration = Duration::from_secs(1);
/// How often to look whether it is.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Runs the process. It listens at once, connects to the store, and serves as soon as it is ready, or after a second.
///
/// # Errors
/// If the address cannot be bound, the store must not be used, or a task fails.
pub async fn run(config: Config, context: Context) -> anyhow::Result<()> {
    let store = Store::open(config.store.clone())?;
    let (clock, of) = (store.clock(Arc::clone(&context.clock)), store.clone());
    let context = context.on_store(clock, move || of.clock_ahead_seconds());
    let listener = bind(&config).await?;
    let mut tasks = Tasks::new();
    start(listener, &config, &store, &context, &mut tasks);
    let (prepare, check) = (Store::prepared, Store::answers);
    let (is_transient, is_refusal) = (StoreError::is_transient, StoreError::is_refusal);
    // The submit queues end after the last request, once their jobs are in the store.
    let dependency = Dependency { name: "store", subject: store, prepare, check, is_transient, is_refusal };
    dependency.run(tasks, context).await
}

/// Binds the address of the API.
///
/// # Errors
/// If the address cannot be bound.
pub async fn bind(config: &Config) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(config.listen).await;
    listener.with_context(|| format!("cannot listen on the API address {}", config.listen))
}

/// Starts the API: the tasks behind its routes, and one that serves connections as soon as the process is ready, or
/// after a second. Whether the store answers is checked by the caller.
pub fn start(listener: TcpListener, config: &Config, store: &Store, context: &Context, tasks: &mut Tasks) {
    let address = listener.local_addr().unwrap_or(config.listen);
    tracing::info!(api = %address, store = store.kind(), "listening");
    let app = router(config, store, context, tasks);
    let shutdown = context.shutdown.clone();
    let health = context.health.clone();
    let most = open_files::half_of(open_files::hard_limit(), config.connections);
    let has_keys = config.access.root.is_some();
    let connections = if has_keys { Connections::fair_and_paced(most) } else { Connections::fair(most) };
    metrics::observe(&context.meter, &connections);
    let tls = config.tls.clone();
    tasks.spawn("http", async move {
        until_ready(&health, &shutdown).await;
        http_server::serve(listener, app, connections, tls, shutdown).await;
    });
}

/// Waits until the process is ready, for at most a second, or until the shutdown.
async fn until_ready(health: &Health, shutdown: &Shutdown) {
    let is_ready = async {
        while !health.is_ready() {
            sleep(LOOK_EVERY).await;
        }
    };
    until_stopping(shutdown, timeout(READY_WITHIN, is_ready)).await;
}

async fn until_stopping<F: Future>(shutdown: &Shutdown, work: F) {
    tokio::select! {
        _ = work => {}
        () = shutdown.stopping() => {}
    }
}

/// The routes of the API, for a caller in the same process. Starts the tasks behind them, which end when
/// the router is dropped or at the shutdown.
pub fn router(config: &Config, store: &Store, context: &Context, tasks: &mut Tasks) -> Router {
    let policies = SharedConfig::default();
    let (shared, of) = (policies.clone(), store.clone());
    context.spawn_reader(POLICIES, tasks, |known| shared.keep(of, random::generator(), known));
    let retries = Retries { policies, installation: config.retry.clone() };
    let uses = Arc::new(KeyUses::default());
    let (noted, of, stopping) = (Arc::clone(&uses), store.clone(), context.shutdown.clone());
    tasks.spawn("api's key uses", async move { until_stopping(&stopping, noted.keep(&of)).await });
    let (access, shared) = (config.access.clone(), retries.policies.clone());
    let gate = Gate::new(access, shared, Arc::clone(&context.clock), uses);
    let keys = config.master_keys.clone();
    let reseal = resealing::keep(store.clone(), retries.policies.clone(), keys, random::generator());
    let shutdown = context.shutdown.clone();
    tasks.spawn("api's resealing", async move { until_stopping(&shutdown, reseal).await });
    let table = app::table(config.dashboard);
    let operations = table.iter().map(|route| route.operation.clone()).collect();
    let api = Api::new(config, store, retries, random::generator(), context, tasks, operations);
    app::app(Arc::new(api), gate, table)
}
