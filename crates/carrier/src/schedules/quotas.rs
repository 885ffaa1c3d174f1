//! Limits the jobs of firings to the quotas of their tenants. Keeps the job counts of tenants for a while.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use ringback_core::access::Quota;
use ringback_core::job::{Tenant, TenantLimits};
use ringback_core::store_types::{MAX_COUNT_AGE, QuotaRequest, StoreError};
use ringback_store::ConfigUnknown;
use tokio::time::Instant;
use tracing::debug;

use super::ScheduleRunner;

/// A count of a tenant's jobs is reused for [`COUNT_SHARE`] times as long as counting took, and at least for this time.
const FRESH: Duration = Duration::from_secs(1);
const COUNT_SHARE: u32 = 20;

/// How many jobs tenants had, when the store was asked for that, and until when the answer is reused.
#[derive(Default)]
pub(crate) struct Counts(Mutex<HashMap<Tenant, Count>>);

#[derive(Clone, Copy)]
struct Count {
    jobs: u64,
    asked: Instant,
    until: Instant,
}

impl Counts {
    fn get(&self, tenant: &Tenant) -> Option<Count> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        counts.retain(|_, count| count.until > now);
        counts.get(tenant).copied()
    }

    fn put(&self, tenant: &Tenant, count: Count) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(tenant.clone(), count);
    }
}

/// How many jobs each tenant may still submit in a round. A tenant without an entry has no limit.
#[derive(Default)]
pub(super) struct Allowances(HashMap<Tenant, u64>);

impl Allowances {
    /// Takes up to `jobs` jobs from a tenant's allowance and returns how many; all if there is no tenant or no entry.
    pub(super) fn take(&mut self, tenant: Option<&Tenant>, jobs: usize) -> usize {
        let Some(left) = tenant.and_then(|tenant| self.0.get_mut(tenant)) else { return jobs };
        let taken = usize::try_from(*left).unwrap_or(jobs).min(jobs);
        *left -= taken as u64;
        taken
    }
}

impl ScheduleRunner<'_> {
    /// Draws the jobs that tenants need from their quotas. A tenant without a quota gets no entry. A tenant gets 0 if
    /// the store cannot answer.
    pub(super) async fn allowances(&self, needed: HashMap<Tenant, u64>) -> Allowances {
        let draws = needed.iter().filter_map(|(tenant, jobs)| {
            let quota = self.policies.quota(tenant).ok().flatten()?;
            Some(async move { (tenant.clone(), self.grant_quota(tenant, quota, *jobs).await) })
        });
        let granted = join_all(draws).await.into_iter().map(|(tenant, granted)| {
            let granted = granted.unwrap_or_else(|error| {
                debug!(%tenant, %error, "the quota of a tenant cannot be drawn from");
                0
            });
            (tenant, granted)
        });
        Allowances(granted.collect())
    }

    async fn grant_quota(&self, tenant: &Tenant, quota: Quota, jobs: u64) -> Result<u64, StoreError> {
        let count = match quota.jobs {
            None => (0, Duration::ZERO),
            Some(_) => {
                let count = self.count(tenant).await?;
                (count.jobs, count.asked.elapsed().min(MAX_COUNT_AGE))
            }
        };
        let draw = QuotaRequest::new(jobs, quota, count);
        Ok(self.store.grant_quota(tenant, draw, self.clock.now()).await?.granted)
    }

    async fn count(&self, tenant: &Tenant) -> Result<Count, StoreError> {
        if let Some(count) = self.counts.get(tenant) {
            return Ok(count);
        }
        let asked = Instant::now();
        let jobs = self.store.jobs_of(tenant).await?;
        let until = asked + (asked.elapsed() * COUNT_SHARE).clamp(FRESH, MAX_COUNT_AGE);
        let count = Count { jobs, asked, until };
        self.counts.put(tenant, count);
        Ok(count)
    }

    /// Returns how many topics and lanes a tenant may use, the defaults if it has no quota; `None` without a tenant.
    /// Fails while the policies are not known.
    pub(super) fn limits(&self, tenant: Option<&Tenant>) -> Result<Option<TenantLimits>, ConfigUnknown> {
        let Some(tenant) = tenant else { return Ok(None) };
        Ok(Some(self.policies.quota(tenant)?.map_or_else(TenantLimits::default, Quota::limits)))
    }
}
