//! OpenAPI schemas of requests and of single values. What each means is said here; the parsers are in the other modules.

mod credential;
mod callback;
mod filter;
mod values;

pub use self::{credential::*, callback::*, filter::*, values::*};
