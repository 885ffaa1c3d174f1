//! Grants of tenants from their quotas. They are in memory, because all who draw are in this process.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use ringback_core::clock::Timestamp;
use ringback_core::job::Tenant;
use ringback_core::store_types::{QuotaGrant, QuotaGrants, QuotaRequest, StoreError};

use crate::EmbeddedStore;

/// The grants of all tenants, as long as they count.
pub(crate) type QuotasGranted = Mutex<HashMap<Tenant, QuotaGrants>>;

impl EmbeddedStore {
    pub async fn grant_quota(
        &self,
        tenant: &Tenant,
        request: QuotaRequest,
        now: Timestamp,
    ) -> Result<QuotaGrant, StoreError> {
        let mut all = self.quotas_granted.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|known, grants| known == tenant || !grants.are_over(now));
        Ok(all.entry(tenant.clone()).or_default().grant_quota(now, request))
    }
}
