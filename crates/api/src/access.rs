//! Access control: who calls the API, and what the caller may do. With a root key, callers need a key, which determines
//! the tenant and the scopes of the caller. Without one, every caller may do everything; by default only callers on
//! this machine are served then.
//!
//! `gate` identifies the caller before a handler runs, and handlers get its `Principal` by the extractor
//! `Authenticated`. `foreign_pages` refuses cross-site requests of browsers if the API has no root key. `running_call`
//! ends calls whose key was deleted or has expired. `key_uses` records when keys were used, and `settings` reads the
//! settings.

mod foreign_pages;
mod gate;
mod key_uses;
pub(crate) mod running_call;
mod settings;

use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::request::Parts;
use ringback_admission::Principal;
use ringback_core::job::TenantScope;

pub(crate) use self::gate::{Gate, is_network};
pub(crate) use self::key_uses::KeyUses;
pub(crate) use self::running_call::Standing;
pub use self::settings::Access;
pub(crate) use self::settings::NAMES;
use crate::error::ApiError;

/// The extractor through which handlers learn who calls.
pub(crate) struct Authenticated(pub(crate) Arc<Principal>);

impl Authenticated {
    /// The principal that [`Gate::admit`] has stored in a request. Without one, the operator who has chosen no tenant.
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
