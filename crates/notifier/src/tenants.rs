//! Whether the installation has tenants, as far as the policy book shows: by a key or a policy of one. It does not know
//! whose jobs wait.

use std::sync::Arc;

use ringback_store::{AccessKeys, PolicyBook};

/// Looks for tenants in the policy book until there is one.
pub(crate) struct TenantWatch {
    policies: PolicyBook,
    /// The keys when it last looked. Each change of the book makes a new map.
    seen: Option<Arc<AccessKeys>>,
    is_over: bool,
}

impl TenantWatch {
    pub(crate) fn new(policies: PolicyBook) -> Self {
        Self { policies, seen: None, is_over: false }
    }

    /// Returns true once, when the book shows that there are tenants.
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
