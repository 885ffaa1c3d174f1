//! `TenantWatch`: finds out whether the installation has tenants, by a key or a policy of one in the shared
//! configuration. It does not know whose jobs wait.

use std::sync::Arc;

use ringback_store::{AccessKeys, SharedConfig};

/// Checks the shared configuration for tenants until it has one.
pub(crate) struct TenantWatch {
    policies: SharedConfig,
    /// The keys when it last looked. Each change of the shared configuration makes a new map.
    seen: Option<Arc<AccessKeys>>,
    is_over: bool,
}

impl TenantWatch {
    pub(crate) fn new(policies: SharedConfig) -> Self {
        Self { policies, seen: None, is_over: false }
    }

    /// Returns true the first time that the shared configuration has a tenant, and false before and after that.
    pub(crate) fn found(&mut self) -> bool {
        if self.is_over {
            return false;
        }
        let (Ok(keys), Ok(policies)) = (self.policies.keys(), self.policies.all()) else { return false };
        if self.seen.as_ref().is_some_and(|seen| Arc::ptr_eq(seen, &keys)) {
            return false;
        }
        self.is_over = keys.values().any(|key| key.grant.tenant.is_some())
            || policies.keys().any(|topic| topic.tenant().is_some());
        self.seen = Some(keys);
        self.is_over
    }
}
