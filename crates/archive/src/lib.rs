//! The archive, without its database: takes the ended jobs out of the store, makes rows of them, gives these to a sink,
//! and removes from the store what the sink has. The audit log goes to the sink too, and stays in the store.
//!
//! `relay` is that work; `audit_log` reads the log for it, whose entries are rows of `audit_entry`. `sink` is what it
//! needs of a database, and `history` what is asked of one that has kept ended jobs; the binary `ringback-archiver` has
//! PostgreSQL and SQLite. `erasure` says which ended jobs are removed, and kept out. `pipe` is a sink and a history in
//! another process: for `ringback up`, whose store no other process can open, and for an API. `attach` keeps the store
//! informed of what is archived, `start` starts it all, and `config` has the settings. `ended_job_answer` is an ended
//! job as an API shows it.

mod attach;
mod audit_entry;
mod audit_log;
mod config;
mod ended_job_answer;
mod ended_job_row;
pub mod erasure;
pub mod history;
mod metrics;
pub mod pipe;
mod relay;
mod sink;
mod start;

pub use self::audit_entry::AuditEntryRow;
pub use self::config::{ArchiveUrl, Config, SETTINGS};
pub use self::ended_job_row::EndedJobRow;
pub use self::metrics::METRICS;
pub use self::sink::{Sink, SinkError, WriteResult};
pub use self::start::start;
