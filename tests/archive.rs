//! Tests of the archive, which has ended jobs and the audit log exactly once, whatever is killed. `ringback-archiver`
//! writes it to PostgreSQL, and the child of `ringback up` to SQLite.

mod audit_log;
mod clock;
mod crash_points;
pub(crate) mod database;
mod ends;
mod history;
mod kills;
mod outage;
mod settings;
