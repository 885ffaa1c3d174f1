//! Who may call the API, and what for. With a root key each call needs a key, which says whose topics and jobs the
//! caller may use (the tenant) and what for (the scopes). Without one every caller may do everything, so that only
//! callers on this machine are served.
//!
//! `layer` finds out who calls before a handler runs, and handlers learn through `authenticated` who it is, and ask the
//! `Principal` which topics it has. `standing` says whether a call that has begun may go on. `key_uses` notes when keys
//! are used.

mod authenticated;
mod key_uses;
mod layer;
mod local;
mod settings;
pub(crate) mod standing;

pub(crate) use self::authenticated::Authenticated;
#[cfg(test)]
pub(crate) use self::authenticated::tests as caller_tests;
pub(crate) use self::key_uses::KeyUses;
pub(crate) use self::layer::{Gate, is_network};
pub use self::settings::Access;
pub(crate) use self::settings::NAMES;
pub(crate) use self::standing::Standing;
