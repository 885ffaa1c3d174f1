//! Extending leases, for push and for pull.

use std::time::Duration;

use ringback_core::clock::{Timestamp, millis_up};
use ringback_core::contract::{Receipt, StoreError};

use crate::record::pack_lease;
use crate::redis_store::RedisStore;
use crate::script;

impl RedisStore {
    /// Extends a lease, up to `within` from when it was granted. Returns its new deadline, or `None` when the receipt
    /// is not current, or the lease has expired and may not last longer.
    pub async fn renew(
        &self,
        receipt: &Receipt,
        by: Duration,
        within: Option<Duration>,
    ) -> Result<Option<Timestamp>, StoreError> {
        let deadline = self.run(&script::RENEW, receipt.shard, |cmd| {
            cmd.arg(&receipt.locator.0).arg(&pack_lease(receipt.lease)).arg(millis_up(by));
            match within {
                Some(within) => cmd.arg(millis_up(within)),
                None => cmd.arg(b""),
            };
        });
        let deadline: i64 = deadline.await?;
        Ok(u64::try_from(deadline).ok().map(Timestamp::from_millis))
    }
}
