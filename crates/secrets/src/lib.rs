//! Secrets: those that sign callbacks, the master keys that seal them at rest, the keys of callers, and TLS identities.
//! It does no I/O and draws no random numbers of its own.
//!
//! Signatures are those of the [Standard Webhooks specification](https://www.standardwebhooks.com), version `v1`.

mod authorities;
mod caller_key;
mod headers;
mod master_keys;
mod settings;
mod signature;
mod signing_secret;
mod tls_identity;

pub use self::authorities::{Authorities, AuthoritiesFileError};
pub use self::caller_key::{CallerKey, KeyHash, RootKey};
pub use self::headers::WebhookHeaders;
pub use self::master_keys::{KEY_BYTES, MasterKeys, OpenError};
pub use self::settings::{MASTER_KEYS, ROOT_KEY, SIGNING_SECRET, WEBHOOK_PREFIX, parse_signing_secrets};
pub use self::signature::sign;
pub use self::signing_secret::SigningSecret;
pub use self::tls_identity::{TlsIdentity, TlsIdentityError};
