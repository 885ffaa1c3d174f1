//! OpenAPI schemas of requests about access: keys of callers, and the credentials of callbacks.

use std::collections::HashSet;

use ringback_core::access::Scope;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::values::{
    BearerToken, HostName, Network, Origin, Password, SealedCredential, TenantName, Time, TopicName, UserName,
};

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

/// What a key allows, and what it is limited to.
#[derive(Deserialize, Serialize, ToSchema)]
#[schema(example = json!({"tenant": "acme", "scopes": ["submit", "read"], "destinations": ["hooks.acme.example"]}))]
#[serde(deny_unknown_fields)]
pub struct NewKeyRequest {
    /// The tenant whose topics and jobs it is for. If it is left out, those without a tenant.
    tenant: Option<TenantName>,
    /// What it allows. `submit`: submit, cancel, reschedule and run jobs. `consume`: reserve and settle pull jobs.
    /// `read`: see jobs, topics, counts and events. `manage`: set policies and secrets, pause topics, revive and purge
    /// jobs, read the audit log. `import`: export and import.
    #[schema(min_items = 1)]
    scopes: Vec<Scope>,
    /// The topics that it is for. If it is left out, all of the tenant.
    #[schema(min_items = 1, max_items = 32)]
    topics: Option<HashSet<TopicName>>,
    /// The hosts that jobs and policies may name, by https alone. If it is left out, all that the installation allows.
    #[schema(min_items = 1, max_items = 32)]
    destinations: Option<HashSet<HostName>>,
    /// The networks that it may be used from. If it is left out, all.
    #[schema(min_items = 1, max_items = 32)]
    cidrs: Option<HashSet<Network>>,
    /// When it expires. If it is left out, never.
    expires: Option<Time>,
}
