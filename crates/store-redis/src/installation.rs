//! Calls on the keys of the installation, for data that exists once for all shards: its row and losses of jobs, live
//! carriers, the shared configuration, quotas, limits of destinations, bulk operations, feeds, schedules, the audit log, failing destinations.

mod admission;
mod audit_log;
mod bulks;
mod failing;
mod feeds;
mod grant_quota;
mod install;
pub(crate) mod losses;
mod members;
pub(crate) mod policies;
mod rewrite_aof;
pub(crate) mod schedules;
