//! The contents of a credential in the clear, and the JSON that is sealed. Sealing and opening are not done here.

use serde::{Deserialize, Serialize};

use super::Kind;

/// The longest contents as JSON, in bytes.
pub const MAX_CONTENTS: usize = 16 * 1024;

/// The contents of a credential, in the clear. `Debug` is left out, so that they do not get into a log.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contents {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bearer: Option<String>,
    /// A user and a password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basic: Option<Basic>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientCertificate>,
    /// Certificate authorities, in the PEM form (RFC 7468).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<String>,
}

/// A user and a password.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Basic {
    /// The user, without a colon.
    pub user: String,
    pub password: String,
}

/// A client certificate, in the PEM form.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientCertificate {
    /// The certificate, and those between it and its authority.
    pub chain: String,
    pub key: String,
}

impl Contents {
    pub fn kinds(&self) -> Vec<Kind> {
        let Self { bearer, basic, client, ca } = self;
        let found = [
            (Kind::Bearer, bearer.is_some()),
            (Kind::Basic, basic.is_some()),
            (Kind::Certificate, client.is_some()),
            (Kind::Ca, ca.is_some()),
        ];
        found.into_iter().filter(|(_, is_there)| *is_there).map(|(kind, _)| kind).collect()
    }

    /// The JSON of the contents, which is what gets sealed.
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("plain data always serialises")
    }

    /// Parses the JSON of [`Contents::json`]; `None` if `json` is anything else.
    pub fn parse(json: &[u8]) -> Option<Self> {
        serde_json::from_slice(json).ok()
    }
}
