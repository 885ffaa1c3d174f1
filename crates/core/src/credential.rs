//! Credentials by which callbacks authenticate to receivers: their names and stored form. Policies refer to one by its
//! name, and callbacks to its origins carry it. Its secrets, in `contents`, are stored sealed, and are not opened here.

mod contents;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use self::contents::{Basic, ClientCertificate, Contents, MAX_CONTENTS};
use crate::clock::Timestamp;
use crate::job::Tenant;

/// The most credentials of an installation.
pub const MAX_CREDENTIALS: usize = 1_000;
/// The most origins of a credential.
pub const MAX_ORIGINS: usize = 32;
/// The longest sealed contents, in bytes: more than the base64 of [`MAX_CONTENTS`].
pub const MAX_SEALED: usize = 24 * 1024;
/// The longest name, in bytes.
const MAX_NAME: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CredentialName(Box<str>);

impl CredentialName {
    /// The form of a name, for error messages.
    pub const ALLOWED: &'static str = "[A-Za-z0-9._-]{1,64}, neither . nor ..";

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for CredentialName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let is_name = (1..=MAX_NAME).contains(&text.len()) && text.bytes().all(is_allowed);
        let is_valid = is_name && ![".", ".."].contains(&text);
        if is_valid { Ok(Self(text.into())) } else { Err(Self::ALLOWED) }
    }
}

impl fmt::Display for CredentialName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Identifies a credential: each tenant has names of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CredentialKey {
    pub tenant: Option<Tenant>,
    pub name: CredentialName,
}

/// What is before the name of a tenant, and after it. No name of a credential has these characters.
const TENANT: char = '~';
const NAME: char = '/';

impl fmt::Display for CredentialKey {
    /// The text under which stores keep the credential: `~tenant/name`, or the name alone if there is no tenant.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.tenant {
            Some(tenant) => write!(f, "{TENANT}{tenant}{NAME}{}", self.name),
            None => self.name.fmt(f),
        }
    }
}

impl FromStr for CredentialKey {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (tenant, name) = match text.strip_prefix(TENANT) {
            Some(rest) => {
                let (tenant, name) = rest.split_once(NAME).ok_or(())?;
                (Some(tenant.parse().map_err(drop)?), name)
            }
            None => (None, text),
        };
        Ok(Self { tenant, name: name.parse().map_err(drop)? })
    }
}

/// A credential as it is stored, in JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Credential {
    /// The origins whose callbacks carry it, sorted.
    pub to: Vec<String>,
    pub kinds: Vec<Kind>,
    /// Its [`Contents`], sealed for [`Credential::sealed_name`].
    pub sealed: Box<str>,
    pub created: Timestamp,
}

impl Credential {
    /// The name that the contents are sealed for, so that they can be opened only under this key and for these origins.
    pub fn sealed_name(key: &CredentialKey, to: &[String]) -> String {
        format!("credential {key} {}", to.join(" "))
    }

    /// Whether callbacks to this origin carry the credential.
    pub fn is_for(&self, origin: &str) -> bool {
        self.to.iter().any(|one| one == origin)
    }
}

/// What a credential can contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[derive(strum::Display, strum::EnumString, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A bearer token (RFC 6750).
    Bearer,
    /// A user and a password (RFC 7617).
    Basic,
    /// A client certificate with its key.
    Certificate,
    /// Certificate authorities instead of those of the notifier.
    Ca,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_it_is_written() {
        for text in ["bank", "~acme/bank", "a.b_c-D9"] {
            let key: CredentialKey = text.parse().unwrap();
            assert_eq!(key.to_string(), text);
        }
        let long = "n".repeat(MAX_NAME + 1);
        for wrong in ["", ".", "..", "~acme", "~acme/", "~/bank", "a b", "a/b", "~a/b/c", "!a", long.as_str()]
        {
            assert!(wrong.parse::<CredentialKey>().is_err(), "{wrong}");
        }
    }
}
