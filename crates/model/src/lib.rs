//! A model of one shard and its processes under faults, and a search over its states.
//!
//! The scripts of the store are atomic steps here, written after `crates/store-redis/src/lua/edges`. The model does
//! not use the product's code, so neither is compiled for the other. docs/design/model.md says what is modelled,
//! what is not, and what must hold.

mod action;
mod bounds;
mod check;
mod coverage;
mod drain;
mod enabled;
mod execute;
pub mod models;
mod planted;
mod property;
mod search;
mod sets;
mod state;
mod store;
mod symmetry;

pub use crate::action::{Action, Fate, Response};
pub use crate::bounds::{Bounds, Budget, MAX_CARRIERS, MAX_JOBS, MAX_NOTIFIERS};
pub use crate::coverage::Situation;
pub use crate::drain::DRAIN_TICKS;
pub use crate::planted::Planted;
pub use crate::property::Property;
pub use crate::search::{Report, search};
pub use crate::sets::{Job, JobSet, Time};
