//! Extending leases, for push and for pull.

use std::time::Duration;

use ringback_core::clock::{Timestamp, millis_up};
use ringback_core::contract::{Receipt, StoreError};

use crate::record::pack_lease;
use crate::redis_store::RedisStore;
use crate::script;

impl RedisStore {
    /// Extends a lease. Returns its new deadline, or `None` when the receipt is not current.
    pub async fn renew(&self, receipt: &Receipt, by: Duration) -> Result<Option<Timestamp>, StoreError> {
        let deadline = self.run(&script::RENEW, receipt.shard, |cmd| {
            cmd.arg(&receipt.locator.0).arg(&pack_lease(receipt.lease)).arg(millis_up(by));
        });
        let deadline: i64 = deadline.await?;
        Ok(u64::try_from(deadline).ok().map(Timestamp::from_millis))
    }
}
