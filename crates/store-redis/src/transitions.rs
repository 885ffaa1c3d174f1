//! How jobs move from state to state: each file packs the arguments of a script beside it and reads its answer.

mod bulk;
mod moves;
mod pass;
mod pull;
mod renew;
mod reserve;
mod schedules;
mod settle;
pub(crate) mod submit;
