//! OpenAPI schemas of parameters and problems, and those of `ringback_wire`.

mod params;
mod problems;

pub(crate) use ringback_wire::EmptyRequest;
pub(crate) use ringback_wire::schema::*;

pub(crate) use self::params::*;
pub(crate) use self::problems::*;
