//! `Authenticated`: the extractor through which handlers learn who calls.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::request::Parts;
use ringback_admission::Principal;
use ringback_core::job::TenantScope;

use crate::error::ApiError;

pub(crate) struct Authenticated(pub(crate) Arc<Principal>);

impl Authenticated {
    /// Who sent a request. Requests that `admit` has not let in are those of this process, and of tests.
    pub(crate) fn of(parts: &Parts) -> Arc<Principal> {
        let known = parts.extensions.get::<Arc<Principal>>();
        known.cloned().unwrap_or_else(|| Arc::new(Principal::operator(TenantScope::All)))
    }
}

impl<S: Sync> FromRequestParts<S> for Authenticated {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        Ok(Self(Self::of(parts)))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A caller whose tenant has shares.
    pub(crate) fn of_tenant(name: &str) -> Principal {
        Principal::of_tenant(Some(name.parse().unwrap()))
    }
}
