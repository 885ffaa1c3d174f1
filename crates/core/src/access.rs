//! API keys: their ids, scopes and grants, how a store keeps them, and the header by which a caller names a tenant. A
//! stored key has only the hash of the secret. `quota` has the quotas of tenants.

mod quota;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use self::quota::{MAX_JOBS_PER_SECOND, MAX_QUOTA_JOBS, MAX_QUOTAS, Quota, QuotaOf};
use crate::clock::Timestamp;
use crate::job::{Tenant, Topic};

/// The header by which the operator chooses a tenant, and other callers may repeat theirs.
pub const TENANT_HEADER: &str = "ringback-tenant";
/// The value of [`TENANT_HEADER`] for topics and jobs without a tenant. No tenant has this name.
pub const TENANT_HEADER_NONE: &str = "~none";
/// The value of [`TENANT_HEADER`] for lists of what belongs to all tenants and to none. No tenant has this name.
pub const TENANT_HEADER_ALL: &str = "~all";
/// The most keys of an installation.
pub const MAX_KEYS: usize = 1000;
/// The most topics, destinations or networks of a key.
pub const MAX_ENTRIES: usize = 32;

/// What a key allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[derive(strum::Display, strum::EnumString, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "lowercase")]
#[schema(as = KeyScope)]
pub enum Scope {
    /// To submit jobs, and to cancel, reschedule and run them.
    Submit,
    /// To reserve pull jobs and to settle them.
    Consume,
    /// To see jobs, topics, counts and events.
    Read,
    /// To set policies and secrets, to pause topics, to revive and purge jobs, and to read the audit log.
    Manage,
    /// To export and to import jobs and topics.
    Import,
}

impl Scope {
    /// The names of all scopes, for error messages.
    pub const ALLOWED: &'static str = "submit, consume, read, manage or import";
}

/// Identifies a key. It is no secret.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct KeyId(Box<str>);

/// What the id of a key begins with.
const PREFIX: &str = "key_";
/// The longest id of a key, in bytes.
const MAX_ID: usize = 64;

impl KeyId {
    /// The form of an id, for error messages.
    pub const ALLOWED: &'static str = "key_ and letters or digits, as the list of keys shows it";

    /// The id `key_` and `unique`, which must be of letters and digits. Checks nothing.
    pub fn of(unique: &str) -> Self {
        Self([PREFIX, unique].concat().into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for KeyId {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let rest = text.strip_prefix(PREFIX).unwrap_or_default();
        let is_valid = !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_alphanumeric());
        if is_valid && text.len() <= MAX_ID { Ok(Self(text.into())) } else { Err(Self::ALLOWED) }
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The rights and limits of a key. An empty list limits nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// Whose topics and jobs.
    pub tenant: Option<Tenant>,
    /// What may be done, each scope once.
    pub scopes: Vec<Scope>,
    pub topics: Vec<Topic>,
    /// To which hosts jobs may go, by https alone; in lower case, without a port.
    pub destinations: Vec<String>,
    /// From which networks, as address and length of the prefix.
    pub networks: Vec<String>,
    /// Until when; `None` for ever.
    pub expires: Option<Timestamp>,
}

impl Grant {
    pub fn allows(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope)
    }
}

/// A key as it is stored, in JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessKey {
    pub id: KeyId,
    /// SHA-256 of its random bits.
    pub hash: [u8; 32],
    pub grant: Grant,
    pub created: Timestamp,
    /// When it was last used, to the hour.
    pub last_used: Option<Timestamp>,
}

impl AccessKey {
    pub fn is_valid_at(&self, now: Timestamp) -> bool {
        self.grant.expires.is_none_or(|expires| now < expires)
    }
}

#[cfg(test)]
mod tests {
    use strum::VariantNames as _;

    use super::*;

    #[test]
    fn an_id_is_read_as_it_is_written() {
        let id = KeyId::of("01J");
        assert_eq!(id.to_string().parse(), Ok(id));
        for wrong in ["", "key_", "01J", "key_a-b", "key_a b", &format!("key_{}", "a".repeat(61))] {
            assert!(wrong.parse::<KeyId>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn errors_name_all_scopes() {
        assert!(Scope::VARIANTS.iter().all(|name| Scope::ALLOWED.contains(name)));
    }
}
