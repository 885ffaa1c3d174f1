//! What bounds a request: how long it waits, how much memory bodies take, and how often the
//! store is asked.

mod deadline;
mod memory_budget;
mod stats_cache;

pub(crate) use self::deadline::Deadline;
pub(crate) use self::memory_budget::{MemoryBudget, Permit};
pub(crate) use self::stats_cache::StatsCache;
