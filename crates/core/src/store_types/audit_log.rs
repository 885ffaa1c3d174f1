//! Entries of the audit log (who has changed what by a call of the API) as stores keep them: ids, owners, sizes and
//! limits. Stores keep the last entries, each as a text that the API has made; the owners share the room.

use std::fmt::{self, Display};
use std::str::FromStr;

use crate::clock::Timestamp;
use crate::job::{Tenant, TenantScope};

/// The most bytes of an entry as it is written.
pub const MAX_AUDIT_LOG_ENTRY: usize = 4 * 1024;
/// The most entries that one call stores or reads.
pub const MAX_AUDIT_LOG_ROWS: usize = 256;
/// How much all entries may weigh together: 10,000 of the lightest, and a little less than 8 MiB.
pub const MAX_AUDIT_LOG_WEIGHT: u64 = 10_000 * MIN_AUDIT_LOG_WEIGHT;
/// What an entry weighs at least, however few bytes it has.
pub const MIN_AUDIT_LOG_WEIGHT: u64 = 838;

/// The characters of an id, in their order (Crockford's base 32).
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// How many of them an id has, and how many of these are its time.
const LENGTH: usize = 26;
const OF_TIME: usize = 10;

/// The id of an entry, a ULID. Ids are in the order of their times.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AuditLogId(Box<str>);

/// The text is not an id of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be {LENGTH} of 0-9 A-H J K M N P-T V-Z")]
pub struct InvalidAuditLogId;

impl AuditLogId {
    /// The id of a time and of the lowest 80 bits of `random`.
    pub fn new(time: Timestamp, random: u128) -> Self {
        let digit = |bits: u128| char::from(ALPHABET[(bits % 32) as usize]);
        let of_time = (0..OF_TIME).rev().map(|n| digit(u128::from(time.as_millis()) >> (5 * n)));
        let others = (0..LENGTH - OF_TIME).map(|n| digit(random >> (5 * n)));
        Self(of_time.chain(others).collect::<String>().into())
    }

    pub fn least_of(time: Timestamp) -> Self {
        Self::new(time, 0)
    }

    pub fn time(&self) -> Timestamp {
        let value = |digit: u8| ALPHABET.iter().position(|b| *b == digit).unwrap_or(0) as u64;
        let digits = self.0.bytes().take(OF_TIME);
        Timestamp::from_millis(digits.fold(0, |time, digit| time << 5 | value(digit)))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for AuditLogId {
    type Err = InvalidAuditLogId;

    fn from_str(text: &str) -> Result<Self, InvalidAuditLogId> {
        let is_valid = text.len() == LENGTH && text.bytes().all(|b| ALPHABET.contains(&b));
        if is_valid { Ok(Self(text.into())) } else { Err(InvalidAuditLogId) }
    }
}

impl Display for AuditLogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The owner of an entry, who is shown it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AuditLogOwner {
    /// The operator's alone: what is about the installation as a whole.
    Installation,
    /// The log of a tenant, or of callers without one.
    Tenant(Option<Tenant>),
}

impl AuditLogOwner {
    /// The text under which stores keep the owner's entries.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Installation => "*",
            Self::Tenant(tenant) => tenant.as_ref().map_or("", Tenant::as_str),
        }
    }

    /// Reads what [`as_str`](Self::as_str) has returned; `None` if the text is something else.
    pub fn from_stored(text: &str) -> Option<Self> {
        Some(match text {
            "*" => Self::Installation,
            "" => Self::Tenant(None),
            name => Self::Tenant(Some(name.parse().ok()?)),
        })
    }

    /// The owner whose entries a scope covers; `None` for the scope of all.
    pub fn of_scope(scope: &TenantScope) -> Option<Self> {
        match scope {
            TenantScope::All => None,
            TenantScope::One(tenant) => Some(Self::Tenant(tenant.clone())),
        }
    }
}

/// An entry as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditLogRow {
    pub id: AuditLogId,
    pub owner: AuditLogOwner,
    /// What it says; at most [`MAX_AUDIT_LOG_ENTRY`] bytes.
    pub written: Box<str>,
}

impl AuditLogRow {
    /// The size of the entry in bytes, at least [`MIN_AUDIT_LOG_WEIGHT`], as it counts towards the limit.
    pub fn weight(&self) -> u64 {
        let bytes = self.id.as_str().len() + self.owner.as_str().len() + self.written.len();
        (bytes as u64).max(MIN_AUDIT_LOG_WEIGHT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_id_of_a_time_is_before_all_others_of_it() {
        let time = Timestamp::from_millis(1_469_918_176_385);
        // The time of the example in the specification of ULIDs.
        assert_eq!(AuditLogId::least_of(time).as_str(), "01ARYZ6S410000000000000000");
        let id: AuditLogId = "01ARYZ6S41TSV4RRFFQ69G5FAV".parse().unwrap();
        assert!(AuditLogId::least_of(time) < id);
        assert!(AuditLogId::least_of(Timestamp::from_millis(time.as_millis() + 1)) > id);
        let (one, other) = (AuditLogId::new(time, u128::MAX), AuditLogId::new(time, 1 << 79));
        assert_eq!(
            (one.as_str(), other.as_str()),
            ("01ARYZ6S41ZZZZZZZZZZZZZZZZ", "01ARYZ6S41000000000000000G")
        );
        assert_eq!((one.time(), other.time()), (time, time));
        assert_eq!(one.as_str().parse(), Ok(one));
        for wrong in
            ["", "01ARYZ6S41TSV4RRFFQ69G5FA", "01ARYZ6S41TSV4RRFFQ69G5FAI", "01aryz6s41tsv4rrffq69g5fav"]
        {
            assert!(wrong.parse::<AuditLogId>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_owner_is_read_as_it_is_written() {
        let acme = AuditLogOwner::Tenant(Some("acme".parse().unwrap()));
        for owner in [AuditLogOwner::Installation, AuditLogOwner::Tenant(None), acme] {
            assert_eq!(AuditLogOwner::from_stored(owner.as_str()), Some(owner));
        }
        assert_eq!(AuditLogOwner::from_stored("a b"), None);
    }
}
