//! The database of the archive: PostgreSQL or SQLite.

use std::sync::Arc;

use ringback_archive::{ArchiveUrl, EndRow, Sink, SinkError, Written};
use ringback_core::clock::Clock;

use crate::config::Config;
use crate::postgres::Postgres;
use crate::sqlite::Sqlite;

/// A database.
pub(crate) enum Database {
    Postgres(Box<Postgres>),
    Sqlite(Sqlite),
}

impl Database {
    /// Reads the settings of a database, and does not connect.
    ///
    /// # Errors
    /// If its URL or the file of authorities cannot be read.
    pub(crate) fn new(config: &Config, clock: Arc<dyn Clock>) -> anyhow::Result<Self> {
        let keep = config.archive.keep;
        Ok(match &config.archive.url {
            ArchiveUrl::Postgres(url) => {
                Self::Postgres(Box::new(Postgres::new(url, config.authorities.as_deref(), keep, clock)?))
            }
            ArchiveUrl::Sqlite(file) => Self::Sqlite(Sqlite::new(file.clone(), keep, clock)),
        })
    }
}

impl Sink for Database {
    async fn prepare(&mut self) -> Result<String, SinkError> {
        match self {
            Self::Postgres(database) => database.prepare().await,
            Self::Sqlite(database) => database.prepare().await,
        }
    }

    async fn write(&mut self, rows: &[EndRow]) -> Result<Written, SinkError> {
        match self {
            Self::Postgres(database) => database.write(rows).await,
            Self::Sqlite(database) => database.write(rows).await,
        }
    }

    async fn maintain(&mut self) -> Result<(), SinkError> {
        match self {
            Self::Postgres(database) => database.maintain().await,
            Self::Sqlite(database) => database.maintain().await,
        }
    }
}
