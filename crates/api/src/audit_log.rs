//! The audit log: each call of an audited operation leaves an entry, which says who has changed what.
//!
//! The middleware in `app` begins and ends each call (`call`); a handler adds what it has changed to its response by a
//! [`Change`]. `entry` makes entries small and free of secrets, and `queue` writes them to the store.
//! `routes::audit_log` reads the log.

mod call;
mod entry;
mod queue;

pub(crate) use self::call::{AuditLog, Audited};
pub(crate) use self::entry::Change;
pub(crate) use self::queue::Queue;
