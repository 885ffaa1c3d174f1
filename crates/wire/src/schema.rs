//! OpenAPI schemas of requests and of single values. What each means is said here; the parsers are in the other modules.

mod access;
mod callback;
mod filter;
mod values;

pub use self::{access::*, callback::*, filter::*, values::*};
