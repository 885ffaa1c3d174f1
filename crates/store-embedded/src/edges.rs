//! The calls that change one job or a few, one file each: on top the call as the store offers it,
//! below what it does in the writer's transaction. Each checks all it needs first and changes after.
//! The answers are the same as those of every other backend.

mod attempts;
mod carriers;
mod grant;
mod moves;
mod outbox;
mod pull;
mod recover;
mod redrives;
mod renew;
mod reserve;
mod settle;
pub(crate) mod submit;
mod topics;
