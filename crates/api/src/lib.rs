//! HTTP in: parse, check, gather, and answer only after the store has said yes.
//!
//! A request passes `observe`, the table in `routes`, an extractor of `extract`, its
//! handler, and for a submit or an import the lines of `submit`; what goes wrong becomes an
//! `error::ApiError`. How much of them there may be is bounded in `room`, how long they wait in
//! `deadline`. Reserves of consumers wait in `pulls`; who listens to events does in `events`. Pages of the listing are put together in `paging`. The process keeps nothing
//! that another one would miss.

mod config;
mod deadline;
mod error;
mod events;
mod extract;
mod metrics;
mod observe;
pub mod openapi;
mod paging;
mod pulls;
mod room;
mod routes;
mod server;
mod state;
mod submit;

use std::io;
use std::sync::Arc;

use anyhow::Context as _;
use axum::Router;
use ringback_core::clock::SystemClock;
use ringback_core::contract::StoreError;
use ringback_service::dependency::Dependency;
use ringback_service::{Context, Shutdown, Tasks, random};
use ringback_store::{PolicyBook, Retries, Store};
use tokio::net::TcpListener;

pub use crate::config::Config;
pub use crate::state::Api;

/// The task that knows the policies of the topics, and whether it does.
const POLICIES: &str = "api's policies";

/// The whole API as a service, without a listener.
pub fn app(api: Arc<Api>) -> Router {
    routes::table(api)
}

/// Answers on `listener` until the shutdown, then lets open requests finish for a few seconds.
///
/// # Errors
/// Those of the listener that waiting does not cure.
pub async fn serve(listener: TcpListener, api: Arc<Api>, shutdown: Shutdown) -> io::Result<()> {
    server::serve(listener, app(api), shutdown).await
}

/// The life of the process: serves at once, and reaches for the store meanwhile.
///
/// # Errors
/// When the address cannot be listened on, the store must not be used, or a task died.
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
    // The lines end after the last request, and after what they have taken in has gone to the
    // store, though nobody waits for the answer.
    tasks.join_all(&context.shutdown).await
}

/// Starts the role on a store that somebody else watches.
///
/// # Errors
/// When the address cannot be listened on.
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
