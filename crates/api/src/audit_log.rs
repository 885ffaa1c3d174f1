//! The audit log: each call of an audited operation leaves an entry, which says who has changed what.
//!
//! A layer around the handlers begins a call and ends it with the response; a handler adds what it knows to its response
//! by a [`Change`]. `entry` makes the entries, and `queue` writes them to the store. Reading
//! the log is in `routes`.

mod call;
mod entry;
mod queue;

pub(crate) use self::call::{AuditLog, Audited};
pub(crate) use self::entry::Change;
pub(crate) use self::queue::Queue;
