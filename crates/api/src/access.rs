//! Who may call the API, and what for. With a root key each call needs a key, which says whose topics and jobs the
//! caller may use (the tenant) and what for (the scopes). Without one every caller may do everything, so that only
//! callers on this machine are served.
//!
//! `layer` finds out who calls before a handler runs, and handlers learn through `Authenticated` who it is, and ask the
//! `Principal` which topics it has. `standing` says whether a call that has begun may go on. `key_uses` notes when keys
//! are used.

mod key_uses;
mod layer;
mod local;
mod settings;
pub(crate) mod standing;

use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::request::Parts;
use ringback_admission::Principal;
use ringback_core::job::TenantScope;

pub(crate) use self::key_uses::KeyUses;
pub(crate) use self::layer::{Gate, is_network};
pub use self::settings::Access;
pub(crate) use self::settings::NAMES;
pub(crate) use self::standing::Standing;
use crate::error::ApiError;

/// The extractor through which handlers learn who calls.
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
