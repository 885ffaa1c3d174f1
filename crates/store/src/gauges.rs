//! Gauges of the shards that a carrier holds.

use futures_util::future::join_all;
use ringback_core::contract::{Epoch, GaugesByShard, Shard};
use ringback_core::job::Topic;

use crate::backend::{Backend, Store};

impl Store {
    /// The gauges of these shards, each if it is still held under this epoch, and of these topics in them.
    /// A shard that cannot be read does not affect the others on Redis. Reads counts and the heads of ready
    /// queues, in bounded calls.
    pub async fn gauges(&self, held: Vec<(Shard, Epoch)>, topics: &[Topic]) -> GaugesByShard {
        let shards: Vec<Shard> = held.iter().map(|(shard, _)| *shard).collect();
        match &self.backend {
            Backend::Redis(store) => {
                let read = held.iter().map(|(shard, epoch)| store.gauges(*shard, epoch, topics));
                shards.iter().copied().zip(join_all(read).await).collect()
            }
            Backend::Embedded(store) => match store.gauges(held, topics).await {
                Ok(gauges) => shards.into_iter().zip(gauges.into_iter().map(Ok)).collect(),
                Err(error) => shards.into_iter().map(|shard| (shard, Err(error.clone()))).collect(),
            },
        }
    }
}
