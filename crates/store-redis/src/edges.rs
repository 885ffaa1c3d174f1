//! The calls that change something: each runs one Lua script of `lua/edges` or `lua/installation`.

mod arrivals;
mod attempts;
mod cancel;
mod carrier;
mod moves;
mod outbox;
pub(crate) mod policies;
mod pull;
mod purge;
mod redrive;
mod renew;
mod reserve;
mod settle;
mod topics;
