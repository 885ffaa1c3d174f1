//! `Gate`: finds out who sent a request, by its key and its tenant header, and refuses the request if the key is not
//! valid or its scopes, tenant or networks do not allow the call.

use std::sync::Arc;

use axum::extract::MatchedPath;
use axum::response::{IntoResponse as _, Response};
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use ipnet::IpNet;
use ringback_admission::{Principal, invalid_field};
use ringback_core::access::{AccessKey, TENANT_HEADER, TENANT_HEADER_ALL, TENANT_HEADER_NONE};
use ringback_core::clock::Clock;
use ringback_core::job::{Tenant, TenantScope};
use ringback_secrets::{CallerKey, KeyHash};
use ringback_service::http_server::ClientAddress;
use ringback_store::SharedConfig;

use super::foreign_pages;
use super::key_uses::KeyUses;
use super::running_call;
use super::settings::Access;
use crate::error::ApiError;
use crate::operation::{Need, Operation};

/// What a call about one tenant may choose.
const ONE_TENANT: &str = "the name of a tenant; or ~none for what belongs to no tenant";

pub(crate) struct Gate {
    access: Access,
    config: SharedConfig,
    clock: Arc<dyn Clock>,
    uses: Arc<KeyUses>,
    /// The operator who has chosen no tenant. Without a root key everybody is this one.
    operator: Arc<Principal>,
}

impl Gate {
    pub(crate) fn new(
        access: Access,
        config: SharedConfig,
        clock: Arc<dyn Clock>,
        uses: Arc<KeyUses>,
    ) -> Self {
        Self { access, config, clock, uses, operator: Arc::new(Principal::operator(TenantScope::All)) }
    }

    #[cfg(test)]
    pub(crate) fn with(access: Access, api: &crate::state::Api) -> Self {
        let clock = Arc::new(ringback_core::clock::SystemClock);
        Self::new(access, api.policies.clone(), clock, Arc::default())
    }

    /// Stores the [`Principal`] that sent a request in its extensions. `operation` is `None` outside of the API's
    /// routes.
    ///
    /// # Errors
    /// The answer that refuses the request: 401, 403, 422 for the tenant header, or 503 until the keys have been read.
    pub(crate) fn admit(
        &self,
        parts: &mut Parts,
        operation: Option<&Operation>,
    ) -> Result<(), Box<Response>> {
        match self.principal(parts, operation) {
            Ok(principal) => {
                parts.extensions.insert(principal);
                Ok(())
            }
            Err(refusal) => Err(Box::new(refusal.into_response())),
        }
    }

    /// Whether a caller that was let in may still have an answer.
    ///
    /// # Errors
    /// 401 if its key was deleted or has expired.
    pub(crate) fn check_again(&self, caller: &Principal) -> Result<(), ApiError> {
        running_call::check(caller, &self.config, &*self.clock)
    }

    fn principal(&self, parts: &Parts, operation: Option<&Operation>) -> Result<Arc<Principal>, ApiError> {
        let takes_all = operation.is_none_or(Operation::takes_all_tenants);
        let needed = match operation {
            Some(operation) => operation.need,
            None if parts.extensions.get::<MatchedPath>().is_some() => Need::Root,
            None => Need::Nothing,
        };
        let Some(root) = &self.access.root else {
            foreign_pages::check(parts, self.access.hosts.as_deref())?;
            if let Chosen::Scope(TenantScope::One(Some(_))) = chosen_tenant(parts, takes_all)? {
                let detail = "there are no tenants without a root key";
                return Err(invalid_field(TENANT_HEADER, detail, "none; or set RINGBACK_ROOT_KEY").into());
            }
            return Ok(Arc::clone(&self.operator));
        };
        if needed == Need::Nothing {
            return Ok(Arc::clone(&self.operator));
        }
        let token = bearer(parts)?;
        if root.is(token) {
            return Ok(Arc::new(match chosen_tenant(parts, takes_all)? {
                Chosen::Scope(scope) => Principal::operator(scope),
                Chosen::AllTenants => Principal::operator_of_all(),
            }));
        }
        let key = self.find(token)?;
        check_network(&key, parts)?;
        check_tenant(&key, parts)?;
        match needed {
            Need::Scope(scope) if key.grant.allows(scope) => {}
            Need::Scope(scope) => {
                let names: Vec<_> = key.grant.scopes.iter().map(<&str>::from).collect();
                let detail = format!("the key does not have the scope {scope}; it has {}", names.join(", "));
                return Err(ApiError::new(StatusCode::FORBIDDEN, detail));
            }
            Need::Root | Need::Nothing => {
                return Err(ApiError::new(StatusCode::FORBIDDEN, "this is for the root key alone"));
            }
        }
        self.uses.note(&key, self.clock.now());
        Ok(Arc::new(Principal::with_key(key)))
    }

    fn find(&self, token: &str) -> Result<Arc<AccessKey>, ApiError> {
        let hash = CallerKey::parse(token).ok_or_else(unknown_key)?.hash();
        let keys = self.config.keys()?;
        let key = keys.get(&hash.0).filter(|key| KeyHash(key.hash) == hash).ok_or_else(unknown_key)?;
        if !key.is_valid_at(self.clock.now()) {
            return Err(unauthorized("the key has expired"));
        }
        Ok(Arc::clone(key))
    }
}

/// The text of the bearer token (RFC 6750, section 2.1). 401 unless there is exactly one.
fn bearer(parts: &Parts) -> Result<&str, ApiError> {
    let mut values = parts.headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err(unauthorized("the API needs a key, as `Authorization: Bearer rbk_…`, once"));
    };
    let text = value.to_str().ok().and_then(|text| text.split_once(' '));
    let token =
        text.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, token)| token.trim());
    token.ok_or_else(|| unauthorized("the header Authorization is not of the form `Bearer rbk_…`"))
}

/// Whose topics and jobs the operator has chosen.
enum Chosen {
    /// A tenant, what belongs to none, or nothing.
    Scope(TenantScope),
    /// Lists of what belongs to all.
    AllTenants,
}

fn chosen_tenant(parts: &Parts, takes_all: bool) -> Result<Chosen, ApiError> {
    let mut values = parts.headers.get_all(TENANT_HEADER).iter();
    let Some(value) = values.next() else { return Ok(Chosen::Scope(TenantScope::All)) };
    let chosen = value.to_str().ok().filter(|_| values.next().is_none()).and_then(|text| match text {
        TENANT_HEADER_NONE => Some(Chosen::Scope(TenantScope::One(None))),
        TENANT_HEADER_ALL => Some(Chosen::AllTenants),
        text => text.parse().ok().map(|tenant| Chosen::Scope(TenantScope::One(Some(tenant)))),
    });
    if matches!(chosen, Some(Chosen::AllTenants)) && !takes_all {
        let detail = format!("{TENANT_HEADER_ALL} is for lists, and this call is about one tenant");
        return Err(invalid_field(TENANT_HEADER, detail, ONE_TENANT).into());
    }
    chosen.ok_or_else(|| {
        let allowed = format!(
            "{}; {TENANT_HEADER_NONE} for what belongs to no tenant; {TENANT_HEADER_ALL} for lists of all",
            Tenant::ALLOWED
        );
        invalid_field(TENANT_HEADER, "it names no tenant", allowed).into()
    })
}

/// Checks that the tenant header, if there is one, names the key's own tenant; 403 otherwise.
fn check_tenant(key: &AccessKey, parts: &Parts) -> Result<(), ApiError> {
    let own = key.grant.tenant.as_ref().map_or(TENANT_HEADER_NONE, Tenant::as_str);
    let is_own = |value: &HeaderValue| value.as_bytes() == own.as_bytes();
    if parts.headers.get_all(TENANT_HEADER).iter().all(is_own) {
        return Ok(());
    }
    Err(ApiError::new(StatusCode::FORBIDDEN, "the key is of another tenant; only the root key chooses one"))
}

fn check_network(key: &AccessKey, parts: &Parts) -> Result<(), ApiError> {
    let networks = &key.grant.networks;
    let peer = parts.extensions.get::<ClientAddress>().map(|client| client.0.to_canonical());
    let is_inside = |network: &String| {
        network.parse::<IpNet>().is_ok_and(|network| peer.is_some_and(|peer| network.contains(&peer)))
    };
    if networks.is_empty() || networks.iter().any(is_inside) {
        return Ok(());
    }
    Err(ApiError::new(StatusCode::FORBIDDEN, "the key may not be used from this address"))
}

/// Whether a key can be limited to this network: CIDR notation, with no bits set after the prefix.
pub(crate) fn is_network(text: &str) -> bool {
    text.parse::<IpNet>().is_ok_and(|network| network.trunc() == network)
}

fn unknown_key() -> ApiError {
    unauthorized("no such key is known: it was mistyped or deleted")
}

fn unauthorized(detail: &str) -> ApiError {
    ApiError::new(StatusCode::UNAUTHORIZED, detail)
}
