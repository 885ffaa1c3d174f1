//! The calls that change something: each runs one Lua script of `lua/edges` or `lua/installation`.

mod arrivals;
mod attempts;
mod carrier;
mod moves;
mod outbox;
pub(crate) mod policies;
mod pull;
mod redrive;
mod renew;
mod reserve;
mod settle;
mod topics;
