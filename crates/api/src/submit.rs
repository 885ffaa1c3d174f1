//! Sends parsed jobs to the store. Submits that arrive together share one store call per shard,
//! and so do imports. No caller waits beyond the deadline of its request.

mod batcher;
mod paced_batch;
mod queued_job;
mod queues;

pub(crate) use self::paced_batch::PacedBatch;
pub(crate) use self::queued_job::QueuedJob;
pub(crate) use self::queues::{ItemFailure, ItemResult, SubmitQueues};
