//! Calls on the keys of the installation: its row, live carriers, the shared configuration, and what is kept once for
//! all shards.

mod audit_log;
mod bulks;
mod failing;
mod feeds;
mod install;
pub(crate) mod losses;
mod members;
pub(crate) mod policies;
mod quota;
mod rewrite_aof;
pub(crate) mod schedules;
