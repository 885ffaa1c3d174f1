//! Gauges of the shards that a carrier holds.

use ringback_core::contract::{Epoch, GaugesByShard, Shard};
use ringback_core::job::Topic;

use crate::backend::backend;
use crate::store::Store;

impl Store {
    /// The gauges of these shards, each if it is still held under this epoch, and of these topics in them.
    /// A shard that cannot be read does not affect the others on Redis. Reads counts and the heads of ready
    /// queues, in bounded calls.
    pub async fn gauges(&self, held: Vec<(Shard, Epoch)>, topics: &[Topic]) -> GaugesByShard {
        match backend!(self.gauges(&held, topics).await) {
            Ok(gauges) => gauges,
            Err(error) => held.into_iter().map(|(shard, _)| (shard, Err(error.clone()))).collect(),
        }
    }
}
