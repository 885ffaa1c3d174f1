//! The invariants that a history is checked for, by number, with the sentence that each stands for.

use serde::{Deserialize, Serialize};
use strum::EnumMessage as _;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[derive(strum::EnumMessage, strum::VariantArray)]
pub enum Invariant {
    /// An accepted job is delivered, dead or cancelled.
    NothingLost,
    /// Only what was submitted is delivered, unchanged.
    ContentUnchanged,
    /// Nothing is delivered before it is due.
    NotEarly,
    /// Nothing is delivered after it was cancelled.
    NotAfterCancel,
    /// Attempts are numbered upwards and end with the retry policy.
    AttemptNumbers,
    /// Retries keep to the tiers, their jitter and Retry-After.
    RetryTimes,
    /// Fencing tokens grow, and no stale holder has an effect.
    Fencing,
    /// A job has at most one live lease.
    OneLease,
    /// A job has one state, and changes it by the known transitions.
    OneState,
    /// Every record is indexed, and no key is foreign.
    RecordsIndexed,
    /// Counts of the ledger, the metrics and the history agree.
    CountsAgree,
    /// A complete 2xx is a success, and nothing else is.
    OnlySuccessCompletes,
    /// Nothing is delivered again without a fault to explain it.
    NoUnexplainedRepeat,
    /// A repeated submit makes no second job.
    NoSecondJob,
    /// A stale receipt settles nothing.
    StaleReceipts,
    /// A job is dead only for a reason that the history shows.
    DeadWithReason,
    /// What is due is delivered within the bound, and the backlog drains.
    Liveness,
    /// A hostile tenant does not delay the others.
    TenantsApart,
    /// The lateness of each delivery is known.
    LatenessKnown,
    /// Memory, handles and tasks stay bounded and return to the baseline.
    ResourcesBounded,
    /// No process panics, logs an unknown error or ends unexpectedly.
    ProcessesHealthy,
    /// The webhook headers of each attempt are right.
    WebhookHeaders,
    /// A submit is answered with 2xx only if the store has it.
    DurableAccept,
    /// A store that lost its data is noticed at once.
    LossNoticed,
    /// No secret appears in the history, in logs or in metrics.
    SecretsHidden,
}

impl Invariant {
    /// The place among all invariants, from 0.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The sentence that describes the invariant, without its full stop.
    pub fn meaning(self) -> &'static str {
        self.get_documentation().expect("each has a doc comment").trim_end_matches('.')
    }
}
