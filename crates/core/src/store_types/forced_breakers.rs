//! Breakers that are forced closed: destinations, each for the jobs of a scope, whose breakers never open until they are
//! reset. They are kept beside the failing destinations, under names of their own.

use super::failing::{FORCED, FailingChange, SharedFailing};
use super::{MAX_PAUSED_DESTINATIONS, MAX_PAUSED_DESTINATIONS_OF_TENANT, PauseLimit};
use crate::destination::{Destination, DestinationPause, Origin};
use crate::job::{Tenant, TenantScope};

/// The text under such a name.
const CLOSED: &str = "closed";

impl SharedFailing {
    /// The destinations whose breakers are forced closed for jobs of this scope.
    pub fn forced_closed(&self, scope: &TenantScope) -> Vec<DestinationPause> {
        let all = self.forced.iter().filter_map(|name| DestinationPause::from_name(name));
        all.filter(|of| of.is_of_all() || of.is_of(scope)).collect()
    }

    /// Closes the breakers of a destination until they are reset. Returns what changes in the store.
    ///
    /// # Errors
    /// The bound that one more would exceed. They are those of paused destinations.
    pub fn force_closed(&mut self, of: &DestinationPause) -> Result<Vec<FailingChange>, PauseLimit> {
        let name = of.name();
        let is_new = !self.forced.contains(&name);
        if is_new {
            let names = self.forced.iter().map(String::as_str);
            let (all, of_tenant) = (MAX_PAUSED_DESTINATIONS, MAX_PAUSED_DESTINATIONS_OF_TENANT);
            if let Some(limit) = PauseLimit::exceeded(names, of.tenant_prefix().as_deref(), all, of_tenant) {
                return Err(limit);
            }
        }
        let change = |name| FailingChange { name, before: None, after: Some(CLOSED.to_owned()) };
        let forced = is_new.then(|| change(format!("{FORCED}{name}")));
        self.forced.insert(name);
        Ok(self.close(of).into_iter().chain(forced).collect())
    }

    /// Closes the breakers of a destination, and lets them open again as they do. Returns what changes in the store.
    pub fn reset_breakers(&mut self, of: &DestinationPause) -> Vec<FailingChange> {
        let name = of.name();
        let change = |name| FailingChange { name, before: Some(CLOSED.to_owned()), after: None };
        let forced = self.forced.remove(&name).then(|| change(format!("{FORCED}{name}")));
        self.close(of).into_iter().chain(forced).collect()
    }

    fn close(&mut self, of: &DestinationPause) -> Vec<FailingChange> {
        self.change_each(|tenant, origin, failures| {
            let is_of = of.is_of_all() || of.is_of(&TenantScope::One(tenant));
            if is_of && of.destination.has(&origin) {
                failures.reset_breaker();
            }
        })
    }

    /// Whether the breaker for the jobs of a tenant, or of none, to an origin is forced closed.
    pub(super) fn is_forced_closed(&self, tenant: Option<&Tenant>, origin: &str) -> bool {
        if self.forced.is_empty() {
            return false;
        }
        let Some(origin) = Origin::parse(origin) else { return false };
        let host = Destination::parse(&origin.host).ok();
        let scopes = [TenantScope::All, TenantScope::One(tenant.cloned())];
        let destinations = host.into_iter().chain([Destination::of_origin(&origin)]);
        destinations.into_iter().any(|destination| {
            let has = |scope| self.forced.contains(&DestinationPause::new(scope, destination.clone()).name());
            scopes.iter().any(has)
        })
    }
}
