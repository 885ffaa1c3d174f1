//! Grants from the quotas of tenants: how many more jobs a caller may submit, and which limit decides that.

use ringback_core::clock::{Timestamp, millis_up};
use ringback_core::job::Tenant;
use ringback_core::store_types::{
    QUOTA_SLOT_MS, QUOTA_SLOTS, QuotaGrant, QuotaLimit, QuotaRequest, StoreError,
};

use crate::keys::KeySpace;
use crate::redis_store::RedisStore;
use crate::script;

impl RedisStore {
    /// Grants up to as many jobs as `draw` wants from a tenant's quota, by the clock of the server, and says which limit
    /// was the lower one.
    pub async fn grant_quota(
        &self,
        tenant: &Tenant,
        draw: QuotaRequest,
        _now: Timestamp,
    ) -> Result<QuotaGrant, StoreError> {
        let QuotaRequest { wanted, per_second, room, age } = draw;
        let limits = (wanted, per_second, room, millis_up(age));
        let args = (tenant.as_str(), limits, QUOTA_SLOT_MS, QUOTA_SLOTS);
        let (granted, is_rate): (u64, bool) =
            self.call(&script::GRANT_QUOTA, KeySpace::Installation).arg(args).run().await?;
        Ok(QuotaGrant { granted, limit: if is_rate { QuotaLimit::Rate } else { QuotaLimit::Jobs } })
    }
}
