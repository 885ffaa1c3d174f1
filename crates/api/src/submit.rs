//! Sends parsed jobs to the store. Submits that arrive together share one store call per shard,
//! and so do imports. No caller waits beyond the deadline of its request.

mod batcher;
mod item;
mod queues;
mod spread;

pub(crate) use self::item::Item;
pub(crate) use self::queues::{ItemFailure, ItemResult, SubmitQueues};
pub(crate) use self::spread::Spread;
