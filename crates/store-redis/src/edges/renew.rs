//! Extending leases, for push and for pull.

use std::time::Duration;

use ringback_core::clock::{Timestamp, millis_up};
use ringback_core::contract::{Lease, PullReceipt, Receipt, Renewed, Shard, StoreError};
use ringback_core::job::Locator;
use tokio::time::Instant;

use crate::record::pack_receipt;
use crate::redis_store::RedisStore;
use crate::script;

impl RedisStore {
    pub async fn renew(&self, lease: &mut Lease, by: Duration) -> Result<Renewed, StoreError> {
        let asked = Instant::now();
        match self.extend(lease.grant().shard, lease.grant().locator, lease.grant().receipt, by).await? {
            None => Ok(Renewed::Stale),
            Some(_) => {
                lease.renewed(asked, by);
                Ok(Renewed::Extended)
            }
        }
    }

    pub async fn renew_receipt(
        &self,
        receipt: &PullReceipt,
        by: Duration,
    ) -> Result<Option<Timestamp>, StoreError> {
        self.extend(receipt.shard, receipt.locator, receipt.lease, by).await
    }

    /// Extends a lease. Returns its new deadline, or `None` when the receipt is not current.
    async fn extend(
        &self,
        shard: Shard,
        locator: Locator,
        receipt: Receipt,
        by: Duration,
    ) -> Result<Option<Timestamp>, StoreError> {
        let deadline = self.run(&script::RENEW, shard, |cmd| {
            cmd.arg(&locator.0).arg(&pack_receipt(receipt)).arg(millis_up(by));
        });
        let deadline: i64 = deadline.await?;
        Ok(u64::try_from(deadline).ok().map(Timestamp::from_millis))
    }
}
