//! Grants from the quotas of tenants. They are kept in memory, because all callers are in this process.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use ringback_core::clock::Timestamp;
use ringback_core::job::Tenant;
use ringback_core::store_types::{QuotaGrant, QuotaGrants, QuotaRequest, StoreError};

use crate::EmbeddedStore;

/// The grants of all tenants. Those that are over are removed at the next grant.
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
