//! How many jobs of firings the quotas of tenants let through.

use std::collections::HashMap;
use std::time::Duration;

use ringback_core::access::Quota;
use ringback_core::contract::{Draw, StoreError};
use ringback_core::job::{Tenant, TenantLimits};
use ringback_store::PoliciesUnknown;

use super::ScheduleRunner;

/// What the tenants whose schedules fire in a round may still submit.
#[derive(Default)]
pub(super) struct Allowances(HashMap<Tenant, u64>);

impl Allowances {
    /// Takes what jobs of a tenant need. False if its quota does not let all of them through.
    pub(super) fn take(&mut self, tenant: Option<&Tenant>, jobs: u64) -> bool {
        let Some(left) = tenant.and_then(|tenant| self.0.get_mut(tenant)) else { return true };
        let is_enough = *left >= jobs;
        if is_enough {
            *left -= jobs;
        }
        is_enough
    }
}

impl ScheduleRunner<'_> {
    /// Draws what tenants need from their quotas.
    pub(super) async fn allowances(&self, needed: HashMap<Tenant, u64>) -> Result<Allowances, StoreError> {
        let mut granted = Allowances::default();
        for (tenant, jobs) in needed {
            let Ok(Some(quota)) = self.policies.quota(&tenant) else { continue };
            let count = match quota.jobs {
                Some(_) => self.store.jobs_of(&tenant).await?,
                None => 0,
            };
            let draw = Draw::new(jobs, quota, (count, Duration::ZERO));
            let drawn = self.store.draw(&tenant, draw, self.clock.now()).await?;
            granted.0.insert(tenant, drawn.granted);
        }
        Ok(granted)
    }

    /// How many topics and lanes a tenant may use.
    pub(super) fn limits(&self, tenant: Option<&Tenant>) -> Result<Option<TenantLimits>, PoliciesUnknown> {
        let Some(tenant) = tenant else { return Ok(None) };
        Ok(Some(self.policies.quota(tenant)?.map_or_else(TenantLimits::default, Quota::limits)))
    }
}
