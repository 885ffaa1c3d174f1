//! The secrets that sign the callbacks of a topic, as its policy keeps them: ids and sealed texts. Not opened here.

use std::fmt;
use std::str::FromStr;

use crate::clock::Timestamp;
use crate::job::Topic;

const PREFIX: &str = "sec_";
/// The longest id, in bytes.
const MAX_ID: usize = 64;

/// The id of a secret. It is no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretId(Box<str>);

/// A secret of a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSecret {
    pub id: SecretId,
    /// The secret, sealed for [`StoredSecret::name`].
    pub sealed: Box<str>,
    /// When it was added.
    pub created: Timestamp,
    /// When it stops signing; `None` while it is not replaced.
    pub until: Option<Timestamp>,
}

impl SecretId {
    pub const ALLOWED: &'static str = "sec_ and letters or digits";

    /// The id of a new secret, from letters and digits that are unique.
    pub fn of(unique: &str) -> Self {
        Self(format!("{PREFIX}{unique}").into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SecretId {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let rest = text.strip_prefix(PREFIX).unwrap_or_default();
        let is_valid = !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_alphanumeric());
        if is_valid && text.len() <= MAX_ID { Ok(Self(text.into())) } else { Err(Self::ALLOWED) }
    }
}

impl fmt::Display for SecretId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl StoredSecret {
    /// The name that a secret is sealed for, so that it can be opened only for its topic and id.
    pub fn name(topic: &Topic, id: &SecretId) -> String {
        format!("signing-secret {} {id}", topic.as_str())
    }

    /// Whether callbacks that are sent at `now` are signed with this secret.
    pub fn signs_at(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_is_written() {
        let id = SecretId::of("01J");
        assert_eq!(id.to_string().parse(), Ok(id));
        for wrong in ["", "sec_", "01J", "sec_a-b", "sec_a b", &format!("sec_{}", "a".repeat(61))] {
            assert!(wrong.parse::<SecretId>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_secret_signs_until_its_time_is_over() {
        let at = Timestamp::from_millis;
        let secret =
            |until| StoredSecret { id: SecretId::of("a"), sealed: "k.AAAA".into(), created: at(1), until };
        assert!(secret(None).signs_at(at(u64::MAX)));
        assert!(secret(Some(at(5))).signs_at(at(4)));
        assert!(!secret(Some(at(5))).signs_at(at(5)));
    }
}
