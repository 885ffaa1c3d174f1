//! The archiver: keeps the ends of jobs in PostgreSQL or SQLite. Any number of archivers share the shards of a store; each
//! end is kept once. Started by `ringback up` it reads ends from a pipe, because no other process can open an embedded store.
//!
//! `database` is the sink, which `postgres` or `sqlite` is behind; `ringback-archive` has the relay from the store to it.

mod config;
mod database;
mod postgres;
mod sqlite;

use ringback_archive::{ArchiveUrl, Metrics, Relay, archiver_name, keep_attached, pipe};
use ringback_core::contract::{MAX_ARCHIVE_ENTRIES, StoreError};
use ringback_service::backoff::PartialOutage;
use ringback_service::dependency::Dependency;
use ringback_service::{Context, Tasks, random};
use ringback_store::{PolicyBook, Store};

pub use self::config::Config;
use self::config::Source;
use self::database::Database;

/// The task, and the readiness check, of the topic policies.
const POLICIES: &str = "archiver's policies";
/// How many relays share the shards. While the database commits for one, another takes ends.
const RELAYS: usize = 2;

/// Runs an archiver until the shutdown.
///
/// # Errors
/// When the store cannot be used, the pipe breaks, or a task failed.
pub async fn run(config: Config, context: Context) -> anyhow::Result<()> {
    match config.source {
        Source::Pipe => from_pipe(config, context).await,
        Source::Store => from_store(config, context).await,
    }
}

async fn from_pipe(config: Config, context: Context) -> anyhow::Result<()> {
    context.health.set("archive", true, "serves the process that started it");
    let database = Database::new(&config, context.clock.clone())?;
    let served = pipe::serve(database, tokio::io::stdin(), tokio::io::stdout());
    tokio::select! {
        biased;
        served = served => {
            served?;
            // The process at the other end is gone. A read of standard input cannot be cancelled, so the process ends here.
            std::process::exit(0)
        }
        () = context.shutdown.stopping() => std::process::exit(0),
    }
}

async fn from_store(config: Config, context: Context) -> anyhow::Result<()> {
    let store = Store::open(config.store.clone())?;
    let mut tasks = Tasks::new();
    let policies = PolicyBook::default();
    let (book, of) = (policies.clone(), store.clone());
    context.spawn_reader(POLICIES, &mut tasks, |known| book.keep(of, random::generator(), known));
    let (attached, stopping) =
        (keep_attached(store.clone(), policies.clone(), config.archive.clone()), context.shutdown.clone());
    tasks.spawn("attach", async move {
        tokio::select! {
            biased;
            () = attached => {}
            () = stopping.stopping() => {}
        }
    });
    let (metrics, name) = (Metrics::new(&context.meter), archiver_name());
    // SQLite has one writer at a time.
    let relays = if matches!(config.archive.url, ArchiveUrl::Sqlite(_)) { 1 } else { RELAYS };
    for (n, shards) in Relay::<Database>::share(store.shards(), relays).into_iter().enumerate() {
        let relay = Relay {
            store: store.clone(),
            policies: policies.clone(),
            config: config.archive.clone(),
            sink: Database::new(&config, context.clock.clone())?,
            shards,
            name: format!("{name}-{n}"),
            metrics: metrics.clone(),
            context: context.clone(),
            is_essential: true,
            outages: PartialOutage::default(),
            limit: MAX_ARCHIVE_ENTRIES,
        };
        tasks.spawn("relay", relay.run());
    }
    let (prepare, check) = (Store::prepared, Store::answers);
    let (is_transient, is_refusal) = (StoreError::is_transient, StoreError::is_refusal);
    let dependency = Dependency { name: "store", subject: store, prepare, check, is_transient, is_refusal };
    dependency.run(tasks, context).await
}
