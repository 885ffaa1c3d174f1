//! How many more jobs a tenant may submit: what it has, and what it draws from its quota.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use ringback_core::clock::Timestamp;
use ringback_core::contract::{Draw, Drawn, Draws, MAX_TOPIC_PAGE, StoreError};
use ringback_core::job::{Tenant, TenantScope};

use crate::backend::{Backend, Store};

/// The draws of an installation whose store is in this process.
pub(crate) type LocalDraws = Mutex<HashMap<Tenant, Draws>>;

impl Store {
    /// Takes a part of the jobs that a tenant may submit. `now` is the time of a store without a server.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating draws again.
    pub async fn draw(&self, tenant: &Tenant, draw: Draw, now: Timestamp) -> Result<Drawn, StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.draw(tenant, draw).await,
            Backend::Embedded(_) => {
                let mut all = self.draws.lock().unwrap_or_else(PoisonError::into_inner);
                all.retain(|known, draws| known == tenant || !draws.are_over(now));
                Ok(all.entry(tenant.clone()).or_default().draw(now, draw))
            }
        }
    }

    /// How many jobs a tenant has that are delayed, ready, reserved or dead. Reads the counts of all its lanes.
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn jobs_of(&self, tenant: &Tenant) -> Result<u64, StoreError> {
        let scope = TenantScope::One(Some(tenant.clone()));
        let (mut jobs, mut after) = (0, None);
        loop {
            let page = self.topics(&scope, after.as_ref(), MAX_TOPIC_PAGE).await?;
            let of = page.items.iter().map(|(_, n)| n.delayed + n.ready + n.reserved + n.dead);
            jobs += of.sum::<u64>();
            after = page.next;
            if after.is_none() {
                return Ok(jobs);
            }
        }
    }
}
