//! The calls that only read: each runs one Lua script of `lua/queries`.

mod dead;
mod forecast;
mod gauges;
mod job;
mod page;
pub(crate) mod stats;
