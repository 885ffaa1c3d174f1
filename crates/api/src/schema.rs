//! OpenAPI schemas of requests, parameters and problems. They are documentation only: the parsers of
//! requests are in `ringback_core::wire`.

mod params;
mod problems;
mod requests;

pub(crate) use self::params::*;
pub(crate) use self::problems::*;
pub(crate) use self::requests::*;
