//! The HTTP API: parses requests, calls the store, and answers only after the store has accepted.
//!
//! `app` puts the routes and the layers around them together. A handler of `routes` gets its input
//! from the extractors of `extract` and the shared [`Api`] of `state`. Submits and imports go
//! through the queues of `submit`, reserves through `pull`, event streams through `events`. `limits`
//! bounds memory and time, `error` turns failures into problem details, and `schema` describes the
//! requests for `openapi`. The process keeps no state that another API process would miss.

mod app;
mod config;
mod error;
mod events;
mod extract;
mod limits;
mod metrics;
pub mod openapi;
mod paging;
mod pull;
mod routes;
mod schema;
mod server;
mod state;
mod submit;

use std::io;
use std::sync::Arc;

use anyhow::Context as _;
use ringback_core::clock::SystemClock;
use ringback_core::contract::StoreError;
use ringback_service::dependency::Dependency;
use ringback_service::{Context, Shutdown, Tasks, random};
use ringback_store::{PolicyBook, Retries, Store};
use tokio::net::TcpListener;

pub use crate::app::app;
pub use crate::config::Config;
pub use crate::state::Api;

/// The task that reads the topic policies, and its readiness check.
const POLICIES: &str = "api's policies";

/// Serves on `listener` until the shutdown, then lets open requests finish for a few seconds.
///
/// # Errors
/// Those of the listener that are not transient.
pub async fn serve(listener: TcpListener, api: Arc<Api>, shutdown: Shutdown) -> io::Result<()> {
    server::serve(listener, app(api), shutdown).await
}

/// Runs the process. It serves at once and connects to the store meanwhile.
///
/// # Errors
/// If the address cannot be bound, the store must not be used, or a task fails.
pub async fn run(config: Config, context: Context) -> anyhow::Result<()> {
    let store = Store::open(config.store.clone())?;
    let mut tasks = Tasks::new();
    start(&config, &store, &context, &mut tasks).await?;
    let dependency = Dependency {
        name: "store",
        subject: store,
        prepare: Store::prepared,
        check: Store::answers,
        is_transient: StoreError::is_transient,
    };
    tasks.spawn("store", dependency.watch(context.health, context.shutdown.clone()));
    // The submit queues end after the last request, once their jobs are in the store.
    tasks.join_all(&context.shutdown).await
}

/// Starts the API on a store that the caller watches.
///
/// # Errors
/// If the address cannot be bound.
pub async fn start(
    config: &Config,
    store: &Store,
    context: &Context,
    tasks: &mut Tasks,
) -> anyhow::Result<()> {
    let Context { shutdown, meter, .. } = context;
    let listener = TcpListener::bind(config.listen)
        .await
        .with_context(|| format!("cannot listen on the API address {}", config.listen))?;
    tracing::info!(api = %listener.local_addr()?, store = store.kind(), "listening");
    let (clock, rng) = (Arc::new(SystemClock), random::generator());
    let policies = PolicyBook::default();
    let (book, of) = (policies.clone(), store.clone());
    context.spawn_reader(POLICIES, tasks, |known| book.keep(of, random::generator(), known));
    let retries = Retries { policies, default: config.retry.clone() };
    let api = Api::new(store.clone(), retries, clock, rng, meter, tasks, shutdown);
    let api = Arc::new(api.with_event_listeners(config.event_listeners));
    tasks.spawn("http", serve(listener, api, shutdown.clone()));
    Ok(())
}
