//! Names of jobs: topic, tenant, id and the key of both, with the shard hash and the locator that follow from the key.
//! Also [`TenantScope`], the tenants whose topics a call covers.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::clock::Timestamp;
use crate::hex::Hex;

/// A text that is not a topic or an id. The message says what is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NameError(pub &'static str);

fn check(text: &str, max: usize, extra: &[u8], allowed: &'static str) -> Result<(), NameError> {
    let inside = |b: u8| b.is_ascii_alphanumeric() || extra.contains(&b);
    let fits = (1..=max).contains(&text.len()) && text.bytes().all(inside);
    if fits && text != "." && text != ".." { Ok(()) } else { Err(NameError(allowed)) }
}

/// The kind of a job: `[A-Za-z0-9._-]{1,64}`, neither `.` nor `..`. It belongs to a tenant, or to none. Topics of
/// different tenants are different topics, whatever their names.
///
/// It has two texts. Callers know it by its [name](Self::name), which is also how it is displayed. Stores know it by
/// [`as_str`](Self::as_str), which has the tenant in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Box<str>")]
pub struct Topic(Box<str>);

impl Topic {
    /// The form of a topic's name, for error messages.
    pub const ALLOWED: &'static str = "1 to 64 of A-Z a-z 0-9 . _ -, and neither . nor ..";

    /// The text that no other topic of the installation has: the name, or `~tenant/name`. Topics without a tenant come
    /// first in the order of these texts, then those of each tenant together.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reads what [`as_str`](Self::as_str) has returned; `None` if the text is something else.
    pub fn from_stored(text: &str) -> Option<Self> {
        match text.strip_prefix(Tenant::MARK) {
            Some(rest) => {
                let (tenant, name) = rest.split_once('/')?;
                Some(name.parse::<Self>().ok()?.of_tenant(Some(&tenant.parse().ok()?)))
            }
            None => text.parse().ok(),
        }
    }

    /// The name, as the callers of its tenant write it.
    pub fn name(&self) -> &str {
        self.0.rsplit_once('/').map_or(&*self.0, |(_, name)| name)
    }

    pub fn tenant(&self) -> Option<Tenant> {
        let (tenant, _) = self.0.strip_prefix(Tenant::MARK)?.split_once('/')?;
        Some(Tenant(tenant.into()))
    }

    /// The topic with the same name that belongs to `tenant`, or to no tenant.
    #[must_use]
    pub fn of_tenant(&self, tenant: Option<&Tenant>) -> Self {
        match tenant {
            Some(tenant) => Self([&*tenant.prefix(), self.name()].concat().into()),
            None => Self(self.name().into()),
        }
    }
}

/// Reads a name, as a topic without a tenant.
impl FromStr for Topic {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        check(text, 64, b"._-", Self::ALLOWED)?;
        Ok(Self(text.into()))
    }
}

/// Reads its stored text.
impl TryFrom<Box<str>> for Topic {
    type Error = NameError;

    fn try_from(text: Box<str>) -> Result<Self, NameError> {
        Self::from_stored(&text).ok_or(NameError(Self::ALLOWED))
    }
}

/// The name, without the tenant.
impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The owner of topics and their jobs: `[A-Za-z0-9._-]{1,32}`, neither `.` nor `..`. A tenant sees neither the topics
/// of other tenants nor those that have no tenant.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Box<str>")]
pub struct Tenant(Box<str>);

impl Tenant {
    /// The form of a tenant's name, for error messages.
    pub const ALLOWED: &'static str = "1 to 32 of A-Z a-z 0-9 . _ -, and neither . nor ..";
    /// The first character of the stored text of a topic with a tenant, which sorts after all characters of names.
    pub const MARK: char = '~';

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The prefix `~tenant/`, which the stored texts of this tenant's topics have, and no others.
    pub fn prefix(&self) -> String {
        format!("{}{}/", Self::MARK, self.0)
    }
}

impl FromStr for Tenant {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        check(text, 32, b"._-", Self::ALLOWED)?;
        Ok(Self(text.into()))
    }
}

impl TryFrom<Box<str>> for Tenant {
    type Error = NameError;

    fn try_from(text: Box<str>) -> Result<Self, NameError> {
        text.parse()
    }
}

impl fmt::Display for Tenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The tenants whose topics and jobs a call covers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TenantScope {
    /// All tenants, and topics without one.
    #[default]
    All,
    /// One tenant, or the topics without one.
    One(Option<Tenant>),
}

impl TenantScope {
    /// Whether a topic is within this scope.
    pub fn has(&self, topic: &Topic) -> bool {
        match self {
            Self::All => true,
            Self::One(None) => !topic.as_str().starts_with(Tenant::MARK),
            Self::One(Some(tenant)) => {
                let rest = topic.as_str().strip_prefix(Tenant::MARK);
                rest.and_then(|rest| rest.strip_prefix(tenant.as_str()))
                    .is_some_and(|rest| rest.starts_with('/'))
            }
        }
    }

    /// Whether the topics of a tenant, or with `None` those without one, are within this scope.
    pub fn has_tenant(&self, tenant: Option<&Tenant>) -> bool {
        match self {
            Self::All => true,
            Self::One(own) => own.as_ref() == tenant,
        }
    }

    /// The bounds of the stored texts of all topics within this scope: the least text, included, and the end, excluded;
    /// `None` for no end.
    pub fn bounds(&self) -> (String, Option<String>) {
        match self {
            Self::All => (String::new(), None),
            Self::One(None) => (String::new(), Some(Tenant::MARK.into())),
            // `0` is the character after `/`.
            Self::One(Some(tenant)) => (tenant.prefix(), Some(format!("{}{}0", Tenant::MARK, tenant))),
        }
    }
}

/// Identifies a job within its topic: `[A-Za-z0-9._~:@+=,-]{1,128}`, neither `.` nor `..`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Box<str>")]
pub struct JobId(Box<str>);

impl JobId {
    /// The form of an id, for error messages.
    pub const ALLOWED: &'static str = "1 to 128 of A-Z a-z 0-9 . _ ~ : @ + = , -, and neither . nor ..";

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id for a caller's idempotency key: `key-` and 128 bits of the key's SHA-256, in hexadecimal.
    pub fn of_key(key: &str) -> Self {
        let digest = Sha256::digest(key);
        Self(format!("key-{}", Hex(&digest[..16])).into())
    }

    /// Whether the id begins as those of idempotency keys do. A caller's own id may begin so too.
    pub fn is_of_key(&self) -> bool {
        self.0.starts_with("key-")
    }

    /// The part that chooses the shard: everything before the first `~`.
    fn group(&self) -> &str {
        self.0.split('~').next().unwrap_or(&self.0)
    }

    /// The [`OrderKey`] of a job with this id, as text: the part before the first `~`, or the whole id if that is empty.
    /// Firings of schedules have none: each is its own.
    pub fn order_key(&self) -> &str {
        Some(self.group()).filter(|group| !group.is_empty()).unwrap_or(&self.0)
    }
}

impl FromStr for JobId {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        check(text, 128, b"._~:@+=,-", Self::ALLOWED)?;
        Ok(Self(text.into()))
    }
}

impl TryFrom<Box<str>> for JobId {
    type Error = NameError;

    fn try_from(text: Box<str>) -> Result<Self, NameError> {
        text.parse()
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What the jobs have in common that an ordered topic delivers one at a time: `[A-Za-z0-9._:@+=,-]{1,101}`, neither
/// `.` nor `..`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OrderKey(Box<str>);

impl OrderKey {
    /// The form of a key, for error messages.
    pub const ALLOWED: &'static str = "1 to 101 of A-Z a-z 0-9 . _ : @ + = , -, and neither . nor ..";

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id of a job with this key: the key, `~` and this end. `None` if that is not an id.
    pub fn id(&self, end: &str) -> Option<JobId> {
        format!("{}~{end}", self.0).parse().ok()
    }

    /// Whether a job with this id may have the key: its id is the key, or the key is the part before its first `~`.
    pub fn is_of(&self, id: &JobId) -> bool {
        id.group() == &*self.0
    }
}

impl FromStr for OrderKey {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        check(text, 101, b"._:@+=,-", Self::ALLOWED)?;
        Ok(Self(text.into()))
    }
}

impl fmt::Display for OrderKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Identifies a job in an installation while the job or its tombstone exists.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct JobKey {
    pub topic: Topic,
    pub id: JobId,
}

impl JobKey {
    /// The job's place in its shard.
    pub fn locator(&self) -> Locator {
        let digest = digest(&self.topic, self.id.as_str());
        Locator(*digest.first_chunk().expect("a digest has 32 bytes"))
    }

    /// A number that chooses the shard. Ids of a topic that agree up to their first `~` share it.
    pub fn shard_hash(&self) -> u32 {
        let digest = digest(&self.topic, self.id.group());
        u32::from_be_bytes([digest[12], digest[13], digest[14], digest[15]])
    }
}

impl fmt::Display for JobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.topic, self.id)
    }
}

fn digest(topic: &Topic, id: &str) -> [u8; 32] {
    Sha256::new().chain_update(topic.as_str()).chain_update(b"/").chain_update(id).finalize().into()
}

/// The place of a job in its shard: 96 bits of SHA-256 over its key. Short enough for every index entry,
/// and long enough that no two jobs share one (an even chance takes 2⁴⁸ jobs).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Locator(pub [u8; 12]);

impl Locator {
    /// The `webhook-id` of a job that was created at this time: the same for all attempts, another one if
    /// the same topic and id are submitted again later. Opaque and without a dot, as the Standard Webhooks
    /// specification requires.
    pub fn webhook_id(&self, created: Timestamp) -> String {
        let created = created.as_millis().to_be_bytes();
        let generation = [&self.0[..], &created[2..]].concat();
        format!("msg_{}", URL_SAFE_NO_PAD.encode(generation))
    }
}

impl fmt::Debug for Locator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Hex(&self.0), f)
    }
}

#[cfg(test)]
mod tests;
