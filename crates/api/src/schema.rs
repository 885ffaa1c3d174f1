//! OpenAPI schemas: of parameters (`params`), of problems (`problems`), and those of `ringback_wire`, re-exported.

mod params;
mod problems;

pub(crate) use ringback_wire::EmptyRequest;
pub(crate) use ringback_wire::schema::*;

pub(crate) use self::params::*;
pub(crate) use self::problems::*;
