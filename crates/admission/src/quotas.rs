//! The quotas of tenants, in front of the submit queues: how many of the jobs that a caller brings are let through.
//!
//! Each tenant with a quota has an account here. It draws from the store a little more than is needed, so that most
//! submits need no draw; what is left expires after a second. The jobs of a tenant are counted again when the count is
//! older than a second, or later if counting takes long. A refusal holds for a moment, so that a tenant that continues
//! does not load the store.

use std::collections::HashMap;
use std::sync::{Arc, Mutex as SyncMutex, PoisonError};
use std::time::Duration;

use http::StatusCode;
use ringback_core::access::Quota;
use ringback_core::clock::Clock;
use ringback_core::job::{NewJob, Tenant, TenantLimits};
use ringback_core::store_types::{MAX_COUNT_AGE, QuotaLimit, QuotaRequest, StoreError};
use ringback_store::{ConfigUnknown, SharedConfig, Store};
use ringback_wire::Problem;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::principal::Principal;

/// For how long a draw can be used, and the count of a tenant's jobs.
const FRESH: Duration = Duration::from_secs(1);
/// A count that took long is used for this many times as long.
const COUNT_SHARE: u32 = 20;
/// For how long a refusal holds.
const REFUSED_FOR: Duration = Duration::from_millis(100);
/// What a draw takes beyond what is needed: this part of what may be submitted a second.
const AHEAD: u64 = 20;
/// The same, as a part of the jobs that it may still have.
const AHEAD_OF_ROOM: u64 = 64;
/// The same, if any number may be submitted a second.
const AHEAD_WITHOUT_RATE: u64 = 100;

/// The accounts of the tenants that have quotas.
pub struct Quotas {
    store: Store,
    config: SharedConfig,
    clock: Arc<dyn Clock>,
    accounts: SyncMutex<HashMap<Tenant, Arc<Mutex<Account>>>>,
}

/// How many jobs are let through, and which limit stops the others.
pub struct Allowed {
    pub jobs: usize,
    quota: Quota,
    limit: QuotaLimit,
}

/// Why it is not known how many jobs are let through.
#[derive(Debug, thiserror::Error)]
pub enum QuotaError {
    /// The quotas have not been read yet.
    #[error(transparent)]
    Policies(#[from] ConfigUnknown),
    /// The store has not granted or refused any.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The jobs that a tenant may submit without a call to the store.
struct Account {
    quota: Quota,
    left: u64,
    drawn: Instant,
    count: Option<Count>,
    refused: Option<(Instant, QuotaLimit)>,
}

/// A count of a tenant's jobs: when it was made, and for how long it can be used.
#[derive(Clone, Copy)]
struct Count {
    jobs: u64,
    asked: Instant,
    fresh: Duration,
}

impl Allowed {
    /// Lets all of them through, as for a caller without a quota.
    pub fn all(jobs: usize) -> Self {
        Self { jobs, quota: Quota::default(), limit: QuotaLimit::Rate }
    }

    /// The 429 for a job that is not let through.
    pub fn refusal(&self) -> Problem {
        let detail = match (self.limit, self.quota) {
            (QuotaLimit::Jobs, Quota { jobs: Some(limit), .. }) => format!(
                "the tenant has the {limit} jobs that its quota allows, dead ones included; the job was not accepted: retry when some have ended, or purge dead ones"
            ),
            (_, Quota { jobs_per_second, .. }) => format!(
                "the tenant submits more than the {} jobs a second that its quota allows; the job was not accepted: retry later",
                jobs_per_second.unwrap_or_default()
            ),
        };
        Problem::new(StatusCode::TOO_MANY_REQUESTS, detail)
    }
}

impl Quotas {
    /// The accounts of one process. The shared configuration has the quotas.
    pub fn new(store: Store, config: SharedConfig, clock: Arc<dyn Clock>) -> Self {
        Self { store, config, clock, accounts: SyncMutex::default() }
    }

    /// Checks the size of a job that a tenant submits, and sets in the job how many topics and lanes the tenant may
    /// have. Lets the job pass while the quotas are not known, since [`Self::take`] refuses it then.
    ///
    /// # Errors
    /// 413 if the body is larger than the quota allows.
    pub fn check_size_and_set_limits(&self, job: &mut NewJob, caller: &Principal) -> Result<(), Problem> {
        let Some(quota) = self.known(caller) else { return Ok(()) };
        job.limits = Some(quota.limits());
        let size = job.delivery.body.bytes.len();
        let Some(limit) = quota.body_bytes.filter(|limit| size > *limit as usize) else { return Ok(()) };
        Err(Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!(
                "the body has {size} bytes, and the tenant's quota allows {limit}: store it elsewhere and submit a reference"
            ),
        ))
    }

    /// How many topics and lanes a caller may use. `None` for the operator and for callers without a tenant, who cannot
    /// have quotas.
    pub fn limits(&self, caller: &Principal) -> Option<TenantLimits> {
        self.known(caller).map(Quota::limits)
    }

    /// The quota of a caller, without limits if there is none or it is not known. `None` if the caller cannot have one.
    fn known(&self, caller: &Principal) -> Option<Quota> {
        caller.limited_tenant()?;
        Some(self.of(caller).ok().flatten().map(|(_, quota)| quota).unwrap_or_default())
    }

    /// Whether a caller has a quota. If not, [`Self::take`] lets all jobs through without a call to the store.
    ///
    /// # Errors
    /// If the quotas have not been read, and the caller can have one.
    pub fn apply_to(&self, caller: &Principal) -> Result<bool, ConfigUnknown> {
        Ok(self.of(caller)?.is_some())
    }

    /// Takes jobs from the account of the caller's tenant, which draws from the store if need be. Returns how many are
    /// let through: all of them for callers without a quota.
    ///
    /// # Errors
    /// If the quotas have not been read, or the store fails.
    pub async fn take(&self, caller: &Principal, jobs: usize) -> Result<Allowed, QuotaError> {
        let Some((tenant, quota)) = self.of(caller)? else { return Ok(Allowed::all(jobs)) };
        let account = self.account(tenant, quota);
        let mut account = account.lock().await;
        account.renew(quota);
        let (taken, limit) = account.take(self, tenant, jobs as u64).await?;
        Ok(Allowed { jobs: usize::try_from(taken).unwrap_or(jobs), quota, limit })
    }

    /// Gives back what was taken for jobs that were not submitted.
    pub async fn give_back(&self, caller: &Principal, jobs: usize) {
        if jobs > 0
            && let Ok(Some((tenant, quota))) = self.of(caller)
        {
            self.account(tenant, quota).lock().await.left += jobs as u64;
        }
    }

    fn of<'a>(&self, caller: &'a Principal) -> Result<Option<(&'a Tenant, Quota)>, ConfigUnknown> {
        let Some(tenant) = caller.limited_tenant() else { return Ok(None) };
        Ok(self.config.quota(tenant)?.map(|quota| (tenant, quota)))
    }

    fn account(&self, tenant: &Tenant, quota: Quota) -> Arc<Mutex<Account>> {
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        let known = accounts.get(tenant).map(Arc::clone);
        known.unwrap_or_else(|| {
            // Tenants whose quota was deleted.
            accounts.retain(|tenant, _| matches!(self.config.quota(tenant), Ok(Some(_))));
            let account = Arc::new(Mutex::new(Account::new(quota)));
            accounts.insert(tenant.clone(), Arc::clone(&account));
            account
        })
    }
}

impl Account {
    fn new(quota: Quota) -> Self {
        Self { quota, left: 0, drawn: Instant::now(), count: None, refused: None }
    }

    /// Replaces the account by an empty one if the quota has changed.
    fn renew(&mut self, quota: Quota) {
        if self.quota != quota {
            *self = Self::new(quota);
        }
    }

    /// Takes up to `wanted` jobs. If too few are left, draws from the store, unless a draw was refused just now.
    /// Returns how many were taken, and what limits the draws.
    async fn take(
        &mut self,
        quotas: &Quotas,
        tenant: &Tenant,
        wanted: u64,
    ) -> Result<(u64, QuotaLimit), QuotaError> {
        if self.drawn.elapsed() >= FRESH {
            self.left = 0;
        }
        let mut limit = QuotaLimit::Rate;
        if self.left < wanted {
            if let Some((at, limit)) = self.refused
                && at.elapsed() < REFUSED_FOR
            {
                return Ok((std::mem::take(&mut self.left).min(wanted), limit));
            }
            let count = self.counted(quotas, tenant).await?;
            let needed = wanted - self.left + self.ahead(count.0);
            let draw = QuotaRequest::new(needed, self.quota, count);
            let drawn = quotas.store.grant_quota(tenant, draw, quotas.clock.now()).await?;
            self.left += drawn.granted;
            self.drawn = Instant::now();
            limit = drawn.limit;
            self.refused = (drawn.granted < needed).then_some((self.drawn, limit));
        }
        let taken = wanted.min(self.left);
        self.left -= taken;
        Ok((taken, limit))
    }

    /// How many jobs to draw beyond those that are needed, of a tenant that has `jobs` jobs: a small part of what it
    /// may still submit, since other processes cannot use them meanwhile.
    fn ahead(&self, jobs: u64) -> u64 {
        let by_rate = self.quota.jobs_per_second.map_or(AHEAD_WITHOUT_RATE, |rate| u64::from(rate) / AHEAD);
        let by_room = self.quota.jobs.map(|limit| limit.saturating_sub(jobs) / AHEAD_OF_ROOM);
        by_room.map_or(by_rate, |by_room| by_rate.min(by_room))
    }

    /// How many jobs the tenant has, and how old that count is; both are 0 if their number is not limited.
    async fn counted(&mut self, quotas: &Quotas, tenant: &Tenant) -> Result<(u64, Duration), QuotaError> {
        if self.quota.jobs.is_none() {
            return Ok((0, Duration::ZERO));
        }
        let count = match self.count.filter(|count| count.asked.elapsed() < count.fresh) {
            Some(count) => count,
            None => {
                let asked = Instant::now();
                let jobs = quotas.store.jobs_of(tenant).await?;
                let fresh = (asked.elapsed() * COUNT_SHARE).clamp(FRESH, MAX_COUNT_AGE);
                *self.count.insert(Count { jobs, asked, fresh })
            }
        };
        Ok((count.jobs, count.asked.elapsed().min(MAX_COUNT_AGE)))
    }
}

#[cfg(test)]
mod tests {
    use ringback_core::clock::SystemClock;
    use ringback_core::job::TenantScope;
    use ringback_store::settings;

    use super::*;

    #[tokio::test]
    async fn only_callers_that_can_have_a_quota_wait_until_quotas_are_known() {
        let store = Store::open(settings::defaults(Duration::from_millis(100))).unwrap();
        let quotas = Quotas::new(store, SharedConfig::default(), Arc::new(SystemClock));
        let acme = Some("acme".parse().unwrap());
        let operator = Principal::operator(TenantScope::One(acme.clone()));
        for free in [operator, Principal::of_tenant(None)] {
            assert!(!quotas.apply_to(&free).unwrap());
            assert_eq!(quotas.take(&free, 7).await.unwrap().jobs, 7);
        }
        let limited = Principal::of_tenant(acme);
        assert!(quotas.apply_to(&limited).is_err());
        assert!(matches!(quotas.take(&limited, 7).await, Err(QuotaError::Policies(_))));
    }
}
