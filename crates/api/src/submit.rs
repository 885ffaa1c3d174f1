//! Sends parsed jobs to the store. Submits that arrive together share one store call per shard,
//! and so do imports. No caller waits beyond the deadline of its request.

mod batcher;
mod item;
mod queues;

pub(crate) use self::item::Item;
pub(crate) use self::queues::{BatchSender, ItemFailure, ItemResult, SubmitQueues};
