//! Adds to the histogram of lateness of a shard.

use ringback_core::store_types::{Lateness, Shard, StoreError};

use crate::txn::Txn;
use crate::{EmbeddedStore, TRANSITION_BYTES};

impl EmbeddedStore {
    pub async fn add_lateness(&self, shard: Shard, lateness: &Lateness) -> Result<(), StoreError> {
        let lateness = lateness.clone();
        let add = move |txn: &mut Txn<'_>| {
            let (shard, now) = (txn.shard(), txn.now());
            txn.tables.minutes.add(shard, now, &lateness)
        };
        self.call(shard, TRANSITION_BYTES, add).await
    }
}
