//! The calls that only read: one job, counts, gauges, forecasts, and pages of jobs, dead jobs and topics. Single jobs
//! and the counts of a shard are read in the writer, the others from a snapshot, so that no call waits for them.

mod counts;
pub(crate) mod dead;
mod forecast;
mod gauges;
mod jobs;
