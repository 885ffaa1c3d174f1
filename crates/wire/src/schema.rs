//! OpenAPI schemas of requests and of single values. What each means is said here; the parsers are in the other modules.

mod callback;
mod credential;
mod filter;
mod values;

pub use self::{callback::*, credential::*, filter::*, values::*};
