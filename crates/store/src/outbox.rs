//! The outbox: reading and acknowledging pending dead-letter notices.

use ringback_core::contract::{AckResult, Epoch, MAX_NOTICES, Outbox, OutboxAck, Shard, StoreError};

use crate::backend::{Store, dispatch};

impl Store {
    /// The first outbox entries of a shard that are due now, at most `limit` and at most [`MAX_NOTICES`].
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn outbox(&self, shard: Shard, limit: usize) -> Result<Outbox, StoreError> {
        dispatch!(self.outbox(shard, limit.min(MAX_NOTICES)))
    }

    /// acknowledge: removes entries that are done, and postpones the others. At most [`MAX_NOTICES`]
    /// together.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating does no harm.
    pub async fn acknowledge(
        &self,
        shard: Shard,
        epoch: &Epoch,
        ack: &OutboxAck,
    ) -> Result<AckResult, StoreError> {
        dispatch!(self.acknowledge(shard, epoch, ack))
    }
}
