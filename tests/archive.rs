//! The archive: the ended jobs are in PostgreSQL, written by `ringback-archiver`, or in SQLite, written by the child of
//! `ringback up`; each once, whatever is killed. So is the audit log.

mod audit_log;
mod clock;
mod crash_points;
pub(crate) mod database;
mod ends;
mod history;
mod kills;
mod outage;
mod settings;
