//! The limits of requests: their deadlines, the memory of their bodies and of their answers, the turns of those that
//! take much work, the shares of tenants, and how often the store is asked for statistics.

mod activity;
mod answer_memory;
mod deadline;
mod memory_budget;
mod shares;
pub(crate) mod stats_cache;
mod turn_queue;

pub(crate) use self::activity::Activity;
pub(crate) use self::answer_memory::AnswerMemory;
pub(crate) use self::deadline::Deadline;
pub(crate) use self::memory_budget::{MemoryBudget, MemoryPermit};
pub(crate) use self::shares::{check_share, permit_to_wait};
pub(crate) use self::stats_cache::StatsCache;
pub(crate) use self::turn_queue::{Turn, TurnQueue};

/// A caller whose tenant has shares.
#[cfg(test)]
fn of_tenant(name: &str) -> ringback_admission::Principal {
    ringback_admission::Principal::of_tenant(Some(name.parse().unwrap()))
}
