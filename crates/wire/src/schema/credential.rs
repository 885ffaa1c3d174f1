//! The OpenAPI schemas of the request to put a credential, with which callbacks authenticate.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::values::{BearerToken, Origin, Password, SealedCredential, UserName};

/// What proves to receivers who calls: at least one of `bearer`, `basic`, `certificate` with `key`, and `ca`. At most
/// 16 KiB in all. With `certificate` or `ca`, all origins are of https.
#[derive(Deserialize, Serialize, ToSchema)]
#[schema(example = json!({"to": ["https://bank.example"], "bearer": "AbCdEf123456"}))]
#[serde(deny_unknown_fields)]
pub struct CredentialRequest {
    /// The origins (scheme, host and port) whose callbacks carry it.
    #[schema(min_items = 1, max_items = 32)]
    to: Vec<Origin>,
    /// A bearer token, for the header `Authorization`.
    bearer: Option<BearerToken>,
    /// A user and a password, for the header `Authorization`.
    basic: Option<BasicRequest>,
    /// A client certificate, followed by those between it and its authority, in the PEM form (RFC 7468).
    #[schema(max_length = 16_384)]
    certificate: Option<String>,
    /// The private key of the certificate, in the PEM form.
    #[schema(max_length = 16_384)]
    key: Option<String>,
    /// The certificate authorities that receivers are checked against instead of those of the notifier, in the PEM form.
    #[schema(max_length = 16_384)]
    ca: Option<String>,
    /// All of these, sealed, as an export of credentials has them: for a restore.
    sealed: Option<SealedCredential>,
}

/// A user and a password.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BasicRequest {
    /// The user.
    user: UserName,
    /// The password.
    password: Password,
}
