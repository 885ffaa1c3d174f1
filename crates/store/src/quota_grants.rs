//! The draws of tenants from their quotas, for a store in this process.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use ringback_core::clock::Timestamp;
use ringback_core::contract::{QuotaGrant, QuotaGrants, QuotaRequest};
use ringback_core::job::Tenant;

/// The draws of all tenants, as long as they count.
#[derive(Default)]
pub(crate) struct LocalQuotaGrants(Mutex<HashMap<Tenant, QuotaGrants>>);

impl LocalQuotaGrants {
    pub(crate) fn grant_quota(&self, tenant: &Tenant, draw: QuotaRequest, now: Timestamp) -> QuotaGrant {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|known, draws| known == tenant || !draws.are_over(now));
        all.entry(tenant.clone()).or_default().grant_quota(now, draw)
    }
}
