//! A carrier's bounded passes over a shard, which promote, recover and evict: their limits and results.

use std::time::Duration;

use super::receipt::Receipt;
use super::reserve::RetryContext;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassLimits {
    /// The most jobs that it moves.
    pub jobs: u32,
    /// The longest time for which the carrier will sleep afterwards.
    pub max_sleep: Duration,
    /// Whether a promote may leave due jobs to a notifier that waits for them, by [`Pass::Left`].
    pub may_leave: bool,
}

/// The result of one pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Another carrier owns the shard. Nothing was done.
    Fenced,
    /// Due jobs are left to a notifier that waits for them, and nothing was done. The next promote is due after this time.
    Left(Duration),
    /// The pass is done. Each `next_*` field says how long until there is more of that kind to do;
    /// zero means now.
    Held {
        /// Jobs that were moved.
        moved: u32,
        /// In a recover: jobs that became dead with reason `lost`.
        other: u32,
        /// Until the next delayed job is due.
        next_due: Option<Duration>,
        /// Until the next lease runs out.
        next_lease: Option<Duration>,
        /// Until the next dead job is evicted.
        next_dead: Option<Duration>,
        /// Until the next pending dead-letter notice is due.
        next_notice: Option<Duration>,
        /// Until the next schedule fires.
        next_firing: Option<Duration>,
    },
}

impl Pass {
    /// This result with `next_due` at `wait` or earlier. Others stay as they are.
    #[must_use]
    pub fn with_due(mut self, wait: Duration) -> Self {
        if let Self::Held { next_due, .. } = &mut self {
            *next_due = Some(next_due.map_or(wait, |due| due.min(wait)));
        }
        self
    }
}

/// A pull job whose lease has run out. It has to be settled as failed.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpiredLease {
    /// Settles the job.
    pub receipt: Receipt,
    /// Decides when the job is retried.
    pub tries: RetryContext,
}

/// The result of a recover.
#[derive(Clone, Debug, PartialEq)]
pub struct Recovered {
    pub pass: Pass,
    /// Pull jobs that the caller has to settle with `Store::settle_expired`. They are returned again
    /// until somebody has done so.
    pub expired: Vec<ExpiredLease>,
}
