//! The calls that change the store: jobs and topics, and all that is stored beside them. Each file has the public calls
//! first, and then the functions that run in the writer's transaction, which check everything before they change rows.
//! The answers are the same as those of every other backend.

mod archive;
mod attempts;
mod audit_log;
mod bulks;
mod carriers;
mod clock_gap;
mod destinations;
mod failing;
mod feeds;
mod grant;
mod lateness;
mod limits;
mod moves;
pub(crate) mod new_record;
mod order;
mod outbox;
mod pull;
pub(crate) mod quota;
mod recover;
mod renew;
mod replace;
mod reserve;
mod schedules;
mod settle;
pub(crate) mod submit;
mod topics;
