//! Chooses the database of the archive by its URL, PostgreSQL or SQLite, and passes calls on to it: `Database` writes
//! ended jobs and the audit log, and `HistoryDatabase` reads and erases ended jobs.

use std::sync::Arc;

use ringback_archive::erasure::Erasure;
use ringback_archive::history::{History, HistoryRequest, QueryError};
use ringback_archive::{ArchiveUrl, AuditEntryRow, EndedJobRow, Sink, SinkError, WriteResult};
use ringback_core::clock::Clock;

use crate::config::Config;
use crate::postgres::{Postgres, PostgresHistory};
use crate::sqlite::{Sqlite, SqliteHistory};

/// A database that keeps ended jobs, and the audit log.
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

    async fn write(&mut self, rows: &[EndedJobRow]) -> Result<WriteResult, SinkError> {
        match self {
            Self::Postgres(database) => database.write(rows).await,
            Self::Sqlite(database) => database.write(rows).await,
        }
    }

    async fn write_audit_log(&mut self, rows: &[AuditEntryRow]) -> Result<WriteResult, SinkError> {
        match self {
            Self::Postgres(database) => database.write_audit_log(rows).await,
            Self::Sqlite(database) => database.write_audit_log(rows).await,
        }
    }

    async fn maintain(&mut self) -> Result<(), SinkError> {
        match self {
            Self::Postgres(database) => database.maintain().await,
            Self::Sqlite(database) => database.maintain().await,
        }
    }
}

/// A database whose ended jobs are read and erased.
pub(crate) enum HistoryDatabase {
    Postgres(Box<PostgresHistory>),
    Sqlite(SqliteHistory),
}

impl HistoryDatabase {
    /// Reads the settings of a database, and does not connect.
    ///
    /// # Errors
    /// If its URL or the file of authorities cannot be read.
    pub(crate) fn new(config: &Config) -> anyhow::Result<Self> {
        Ok(match &config.archive.url {
            ArchiveUrl::Postgres(url) => {
                Self::Postgres(Box::new(PostgresHistory::new(url, config.authorities.as_deref())?))
            }
            ArchiveUrl::Sqlite(file) => Self::Sqlite(SqliteHistory::new(file.clone())),
        })
    }
}

impl History for HistoryDatabase {
    async fn rows(&mut self, ask: &HistoryRequest) -> Result<Vec<EndedJobRow>, QueryError> {
        match self {
            Self::Postgres(database) => database.rows(ask).await,
            Self::Sqlite(database) => database.rows(ask).await,
        }
    }

    async fn erase(&mut self, erasure: &Erasure) -> Result<u64, QueryError> {
        match self {
            Self::Postgres(database) => database.erase(erasure).await,
            Self::Sqlite(database) => database.erase(erasure).await,
        }
    }
}
