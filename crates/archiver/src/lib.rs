//! The archiver: keeps ended jobs and the audit log in PostgreSQL or SQLite. Any number of archivers share the shards
//! of a store; each ended job is kept once. Started by `ringback up` it reads them from a pipe, because no other
//! process can open an embedded store. Started by an API it answers queries for ended jobs and erases them.
//!
//! `database` chooses between `postgres` and `sqlite`, `select` builds the query of a page for both, and `schema`
//! checks the version of their tables. The relay from the store to a database is in `ringback-archive`.

mod config;
mod database;
mod postgres;
mod schema;
mod select;
mod sqlite;

use std::sync::Arc;

use ringback_archive::pipe::{self, Source};
use ringback_archive::{ArchiveUrl, start};
use ringback_core::store_types::StoreError;
use ringback_service::dependency::Dependency;
use ringback_service::{Context, Tasks};
use ringback_store::Store;

pub use self::config::Config;
use self::database::{Database, HistoryDatabase};

/// How many relays share the shards. While the database commits for one, another reads ended jobs from the store.
const RELAYS: usize = 2;
/// How many queries of an API are answered at a time.
const CONNECTIONS: usize = 4;

/// Runs an archiver until the shutdown. As the child of another process, it ends this process with status 0 then, or
/// when the pipe is closed.
///
/// # Errors
/// If the URL of the database is wrong, the store cannot be used, the pipe breaks, or a task fails.
pub async fn run(config: Config, context: Context) -> anyhow::Result<()> {
    match config.source {
        Source::Pipe => {
            let database = Database::new(&config, context.clock.clone())?;
            until_closed(pipe::serve(database, tokio::io::stdin(), tokio::io::stdout()), &context).await
        }
        Source::History => {
            let databases =
                (0..CONNECTIONS).map(|_| HistoryDatabase::new(&config)).collect::<Result<_, _>>()?;
            let served = pipe::serve_history(databases, tokio::io::stdin(), tokio::io::stdout());
            until_closed(served, &context).await
        }
        Source::Store => from_store(config, context).await,
    }
}

/// Serves the process that has started this one. Ends this process with status 0 when that closes the pipe, or at the
/// shutdown; returns only an error of the pipe.
async fn until_closed(
    served: impl Future<Output = std::io::Result<()>>,
    context: &Context,
) -> anyhow::Result<()> {
    context.health.set("archive", true, "serves the process that started it");
    tokio::select! {
        biased;
        served = served => {
            served?;
            // The process at the other end is gone. A read of standard input cannot be cancelled, so the process ends
            // here.
            std::process::exit(0)
        }
        () = context.shutdown.stopping() => std::process::exit(0),
    }
}

async fn from_store(config: Config, context: Context) -> anyhow::Result<()> {
    let store = Store::open(config.store.clone())?;
    let (clock, of) = (store.clock(Arc::clone(&context.clock)), store.clone());
    let context = context.on_store(clock, move || of.clock_ahead_seconds());
    let mut tasks = Tasks::new();
    // SQLite has one writer at a time.
    let relays = if matches!(config.archive.url, ArchiveUrl::Sqlite(_)) { 1 } else { RELAYS };
    let sinks = (0..relays).map(|_| Database::new(&config, context.clock.clone()));
    start(&store, &config.archive, sinks.collect::<Result<_, _>>()?, true, &context, &mut tasks);
    let (prepare, check) = (Store::prepared, Store::answers);
    let (is_transient, is_refusal) = (StoreError::is_transient, StoreError::is_refusal);
    let dependency = Dependency { name: "store", subject: store, prepare, check, is_transient, is_refusal };
    dependency.run(tasks, context).await
}
