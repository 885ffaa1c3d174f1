//! Quotas: how much a tenant may use ([`Quota`]), and which tenants a quota is for ([`QuotaOf`]).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::job::{Tenant, TenantLimits};

/// The most quotas of an installation.
pub const MAX_QUOTAS: usize = 1000;
/// The highest rate of a quota, in jobs a second.
pub const MAX_JOBS_PER_SECOND: u32 = 1_000_000;
/// The most jobs that a quota may allow.
pub const MAX_QUOTA_JOBS: u64 = 1_000_000_000;

/// The quota of a tenant. `None` means no limit. Stores keep it as JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quota {
    /// How many jobs it may submit a second.
    pub jobs_per_second: Option<u32>,
    /// How many jobs it may have that are delayed, ready, reserved or dead.
    pub jobs: Option<u64>,
    /// How many topics with jobs it may have in a shard.
    pub topics: Option<u32>,
    /// How many lanes with jobs it may have in a shard.
    pub lanes: Option<u32>,
    /// How many bytes the body of a job may have.
    pub body_bytes: Option<u32>,
}

impl Quota {
    /// The limits that a store checks when the tenant submits to a new topic or lane; `u32::MAX` for no limit.
    pub fn limits(self) -> TenantLimits {
        let unlimited = TenantLimits::default();
        TenantLimits {
            topics: self.topics.unwrap_or(unlimited.topics),
            lanes: self.lanes.unwrap_or(unlimited.lanes),
        }
    }
}

/// For whom a quota is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum QuotaOf {
    /// Each tenant that has no quota of its own.
    Others,
    Tenant(Tenant),
}

impl QuotaOf {
    /// The form of its text, for error messages.
    pub const ALLOWED: &'static str =
        "a tenant, [A-Za-z0-9._-]{1,32}, or * for each that has no quota of its own";
    const OTHERS: &'static str = "*";

    pub fn as_str(&self) -> &str {
        match self {
            Self::Others => Self::OTHERS,
            Self::Tenant(tenant) => tenant.as_str(),
        }
    }
}

impl FromStr for QuotaOf {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        match text {
            Self::OTHERS => Ok(Self::Others),
            tenant => tenant.parse().map(Self::Tenant).map_err(|_| Self::ALLOWED),
        }
    }
}

impl fmt::Display for QuotaOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_for_a_tenant_or_for_the_others() {
        for text in ["*", "acme"] {
            assert_eq!(text.parse::<QuotaOf>().unwrap().to_string(), text);
        }
        for wrong in ["", "**", "a b", "~acme"] {
            assert_eq!(wrong.parse::<QuotaOf>(), Err(QuotaOf::ALLOWED), "{wrong}");
        }
    }
}
