//! HTTP in: parse, check, gather, and answer only after the store has said yes.
//!
//! A request passes `observe`, the table in `routes`, an extractor of `extract`, its
//! handler, and for a submit the lines of `submit`; what goes wrong becomes an
//! `error::ApiError`. The process keeps nothing that another one would miss.

mod config;
mod error;
mod extract;
mod metrics;
mod observe;
pub mod openapi;
mod pressure;
mod routes;
mod server;
mod state;
mod submit;

use std::io;
use std::sync::Arc;

use anyhow::Context as _;
use axum::Router;
use ringback_core::clock::SystemClock;
use ringback_core::store::{Store, StoreError};
use ringback_service::dependency::Dependency;
use ringback_service::{Context, Shutdown, Tasks, random};
use tokio::net::TcpListener;
use tokio_util::task::TaskTracker;

pub use crate::config::Config;
pub use crate::state::Api;

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
/// When the address cannot be listened on, or the store must not be used.
pub async fn run(config: Config, context: Context) -> anyhow::Result<()> {
    let Context { shutdown, health, meter } = context;
    let store = Store::open(config.store)?;
    let listener = TcpListener::bind(config.listen)
        .await
        .with_context(|| format!("cannot listen on the API address {}", config.listen))?;
    tracing::info!(api = %listener.local_addr()?, store = store.kind(), "listening");

    let lines = TaskTracker::new();
    let api = Api::new(store.clone(), Arc::new(SystemClock), random::generator(), &meter, &lines);
    let api = Arc::new(api);
    let dependency = Dependency {
        name: "store",
        prepare: {
            let store = store.clone();
            move || store.clone().prepared()
        },
        check: move || store.clone().answers(),
        is_transient: StoreError::is_transient,
    };
    let mut tasks = Tasks::new();
    tasks.spawn("store", dependency.watch(health, shutdown.clone()));
    tasks.spawn("http", serve(listener, api, shutdown.clone()));
    tasks.join_all(&shutdown).await?;

    // What was accepted by a line goes to the store, though nobody waits for the answer.
    lines.close();
    tokio::select! {
        () = lines.wait() => {}
        () = shutdown.expired() => {}
    }
    Ok(())
}
