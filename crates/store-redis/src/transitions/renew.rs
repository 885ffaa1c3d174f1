//! Extending leases, for push and for pull.

use std::time::Duration;

use ringback_core::clock::{Timestamp, millis_up};
use ringback_core::store_types::{Receipt, StoreError};

use crate::record::pack_lease;
use crate::redis_store::RedisStore;
use crate::script;

impl RedisStore {
    /// Sets a lease's deadline to `by` from now, but to at most `within` after it was granted and never earlier than it
    /// is. Returns the deadline; `None` if the receipt is not current, or the deadline would have passed.
    pub async fn renew(
        &self,
        receipt: &Receipt,
        by: Duration,
        within: Option<Duration>,
    ) -> Result<Option<Timestamp>, StoreError> {
        let within = within.map_or_else(String::new, |within| millis_up(within).to_string());
        let renew = self.call(&script::RENEW, receipt.shard).arg(&receipt.locator.0);
        let renew = renew.arg(&pack_lease(receipt.lease)).arg(millis_up(by)).arg(within);
        let deadline: i64 = renew.run().await?;
        Ok(u64::try_from(deadline).ok().map(Timestamp::from_millis))
    }
}
