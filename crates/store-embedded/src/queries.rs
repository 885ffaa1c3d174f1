//! The calls that only read: one job, the counts of a shard, and pages of jobs, dead jobs and topics.
//! Pages are read from a snapshot beside the writer, so that no call waits for them.

mod counts;
pub(crate) mod dead;
mod forecast;
mod gauges;
mod jobs;
