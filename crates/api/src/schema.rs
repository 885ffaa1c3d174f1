//! OpenAPI schemas of requests, parameters and problems. They are documentation only: the parsers of
//! requests are in `ringback_wire`.

mod access;
mod callback;
mod filter;
mod history;
mod params;
mod patterns;
mod policies;
mod problems;
mod requests;
mod rules;
mod schedules;
mod values;

pub(crate) use self::access::*;
pub(crate) use self::filter::*;
pub(crate) use self::history::*;
pub(crate) use self::params::*;
pub(crate) use self::policies::*;
pub(crate) use self::problems::*;
pub(crate) use self::requests::*;
pub(crate) use self::rules::{merge, rules};
pub(crate) use self::schedules::*;
pub(crate) use self::values::*;
