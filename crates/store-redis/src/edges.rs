//! The calls that change something: each runs one Lua script of `lua/edges` or `lua/installation`.

mod archive;
mod arrivals;
mod attempts;
mod audit_log;
mod bulk;
mod carrier;
mod destinations;
mod draw;
mod failing;
mod feeds;
mod moves;
mod outbox;
mod pull;
mod renew;
mod reserve;
mod schedules;
mod settle;
pub(crate) mod topics;
