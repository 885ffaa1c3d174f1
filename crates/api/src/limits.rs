//! The limits of requests: their deadlines, the memory of their bodies, the turns of those that read much, and how often
//! the store is asked for statistics.

mod deadline;
mod memory_budget;
pub(crate) mod stats_cache;
mod turns;

pub(crate) use self::deadline::Deadline;
pub(crate) use self::memory_budget::{MemoryBudget, Permit};
pub(crate) use self::stats_cache::StatsCache;
pub(crate) use self::turns::Turns;
