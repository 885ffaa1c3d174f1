//! The calls that change one job or a few, one file each: on top the call as the store offers it,
//! below what it does in the writer's transaction. Each checks all it needs first and changes after.
//! The answers are the same as those of every other backend.

mod attempts;
mod cancel;
mod carriers;
mod evict;
mod grant;
mod moves;
mod outbox;
mod pass;
mod pause;
mod policies;
mod promote;
mod pull;
mod purge;
mod recover;
mod redrives;
mod renew;
mod reserve;
mod settle;
pub(crate) mod submit;
