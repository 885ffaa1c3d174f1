//! The address guard: which destinations callbacks may go to. Rules for addresses, names and ports, and the settings
//! that change them. It does no I/O: whoever takes a URL, looks up a name or connects asks it.
//!
//! An address must be public, which leaves out all that the special-purpose registries of IANA list (RFC 6890). A name
//! must be one of the public DNS, and each of its addresses public.

mod destination;
mod forbidden;
mod guard;
mod names;
mod ports;
mod settings;
mod special;

pub use self::forbidden::Forbidden;
pub use self::guard::Guard;
pub use self::settings::{NAMES, parse};
