//! What the relay needs of a database: [`Sink`], and the results and errors of its calls.

use serde::{Deserialize, Serialize};

use crate::audit_entry::AuditEntryRow;
use crate::ended_job_row::EndedJobRow;

/// A database that keeps ended jobs, and the audit log.
pub trait Sink: Send {
    /// Connects, and makes the schema if there is none. Returns what was found, for the readiness check.
    ///
    /// # Errors
    /// If the database cannot be used now.
    fn prepare(&mut self) -> impl Future<Output = Result<String, SinkError>> + Send;

    /// Stores rows, each once: a row that is there already is left as it is. When this returns they survive a crash of
    /// the database. Without rows it only checks that the database can be used.
    ///
    /// # Errors
    /// If the database cannot be used now. Then none of the rows counts as stored; writing them again does no harm.
    fn write(&mut self, rows: &[EndedJobRow]) -> impl Future<Output = Result<WriteResult, SinkError>> + Send;

    /// Stores entries of the audit log, each once, as [`write`](Self::write) does with ended jobs.
    ///
    /// # Errors
    /// If the database cannot be used now. Then none of them counts as stored; writing them again does no harm.
    fn write_audit_log(
        &mut self,
        rows: &[AuditEntryRow],
    ) -> impl Future<Output = Result<WriteResult, SinkError>> + Send;

    /// Removes what was kept long enough. Called now and then.
    ///
    /// # Errors
    /// If the database cannot be used now.
    fn maintain(&mut self) -> impl Future<Output = Result<(), SinkError>> + Send;
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteResult {
    /// Rows that were not there before.
    pub new: u64,
    /// Rows that the database refuses for what is in them. They are logged, and not tried again.
    pub refused: u64,
}

/// Why a database cannot be used. The text is public on `/readyz`, so it has no secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{0}")]
pub struct SinkError(pub String);
