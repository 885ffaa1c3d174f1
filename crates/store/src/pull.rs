//! The consumer's transitions: reserving pull jobs, and renewing and settling them by receipt.

use std::time::Duration;

use ringback_core::clock::Timestamp;
use ringback_core::job::Topic;
use ringback_core::outcome::Outcome;
use ringback_core::store_types::{
    LeaseCheck, Pull, Pulled, Receipt, RetryContext, SettleResult, Shard, StoreError,
};

use crate::backend::backend;
use crate::store::Store;

impl Store {
    /// reserve, for a consumer: ready → reserved.
    /// Repeating with the same caller and sequence returns the same jobs.
    pub async fn pull(&self, shard: Shard, ask: &Pull<'_>) -> Result<Pulled, StoreError> {
        backend!(self.pull(shard, ask).await)
    }

    /// The topics of a shard that have ready pull jobs, in pages. Reads at most `limit` lanes after the first `from`,
    /// and returns also how many were read: fewer than `limit` on the last page. No transition.
    pub async fn pull_topics(
        &self,
        shard: Shard,
        from: usize,
        limit: usize,
    ) -> Result<(Vec<Topic>, usize), StoreError> {
        backend!(self.pull_topics(shard, from, limit).await)
    }

    /// Whether a receipt names a shard of this store. It may still be stale.
    pub fn knows(&self, receipt: &Receipt) -> bool {
        receipt.shard.0 < self.shards
    }

    /// What decides when the job of a receipt is retried; `None` if the receipt is not current. No transition.
    pub async fn lease_info(&self, receipt: &Receipt) -> Result<Option<RetryContext>, StoreError> {
        backend!(self.lease_info(receipt).await)
    }

    /// renew, by receipt: the lease lasts for `by` from now, but no longer than `within` from when it was granted, and
    /// never shorter than before. Returns the new deadline; `None` if the receipt is not current, or if the lease has
    /// expired and may not last longer.
    pub async fn renew_receipt(
        &self,
        receipt: &Receipt,
        by: Duration,
        within: Duration,
    ) -> Result<Option<Timestamp>, StoreError> {
        backend!(self.renew(receipt, by, Some(within)).await)
    }

    /// settle, by receipts, all of one shard. Returns a result per receipt, in order; never
    /// [`SettleResult::Late`]. A receipt that is not current has no effect. Only the repetition of the outcome
    /// that settled the job last is [`SettleResult::Replayed`].
    pub async fn settle_receipts(
        &self,
        shard: Shard,
        outcomes: &[(Receipt, Outcome)],
    ) -> Result<Vec<SettleResult>, StoreError> {
        backend!(self.settle_receipts(shard, outcomes, LeaseCheck::Current).await)
    }

    /// [`Store::settle_receipts`] for leases that have run out. A lease that was renewed meanwhile is
    /// [`SettleResult::Stale`].
    pub async fn settle_expired(
        &self,
        shard: Shard,
        outcomes: &[(Receipt, Outcome)],
    ) -> Result<Vec<SettleResult>, StoreError> {
        backend!(self.settle_receipts(shard, outcomes, LeaseCheck::Expired).await)
    }
}
