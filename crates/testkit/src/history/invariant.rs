//! The invariants that a history is checked for, by number, with the sentence that each stands for.

use serde::{Deserialize, Serialize};

/// One invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[derive(strum::VariantArray)]
pub enum Invariant {
    NothingLost,
    ContentUnchanged,
    NotEarly,
    NotAfterCancel,
    AttemptNumbers,
    RetryTimes,
    Fencing,
    OneLease,
    OneState,
    RecordsIndexed,
    CountsAgree,
    OnlySuccessCompletes,
    NoUnexplainedRepeat,
    NoSecondJob,
    StaleReceipts,
    DeadWithReason,
    Liveness,
    TenantsApart,
    LatenessKnown,
    ResourcesBounded,
    ProcessesHealthy,
    WebhookHeaders,
    DurableAccept,
    LossNoticed,
    SecretsHidden,
}

use Invariant::{
    AttemptNumbers, ContentUnchanged, CountsAgree, DeadWithReason, DurableAccept, Fencing, LatenessKnown,
    Liveness, LossNoticed, NoSecondJob, NoUnexplainedRepeat, NotAfterCancel, NotEarly, NothingLost, OneLease,
    OneState, OnlySuccessCompletes, ProcessesHealthy, RecordsIndexed, ResourcesBounded, RetryTimes,
    SecretsHidden, StaleReceipts, TenantsApart, WebhookHeaders,
};

impl Invariant {
    /// Its place among all invariants.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// What holds if it holds.
    pub const fn meaning(self) -> &'static str {
        match self {
            NothingLost => "an accepted job is delivered, dead or cancelled",
            ContentUnchanged => "only what was submitted is delivered, unchanged",
            NotEarly => "nothing is delivered before it is due",
            NotAfterCancel => "nothing is delivered after it was cancelled",
            AttemptNumbers => "attempts are numbered upwards and end with the retry policy",
            RetryTimes => "retries keep to the tiers, their jitter and Retry-After",
            Fencing => "fencing tokens grow, and no stale holder has an effect",
            OneLease => "a job has at most one live lease",
            OneState => "a job has one state, and changes it by the known transitions",
            RecordsIndexed => "every record is indexed, and no key is foreign",
            CountsAgree => "counts of the ledger, the metrics and the history agree",
            OnlySuccessCompletes => "a complete 2xx is a success, and nothing else is",
            NoUnexplainedRepeat => "nothing is delivered again without a fault to explain it",
            NoSecondJob => "a repeated submit makes no second job",
            StaleReceipts => "a stale receipt settles nothing",
            DeadWithReason => "a job is dead only for a reason that the history shows",
            Liveness => "what is due is delivered within the bound, and the backlog drains",
            TenantsApart => "a hostile tenant does not delay the others",
            LatenessKnown => "the lateness of each delivery is known",
            ResourcesBounded => "memory, handles and tasks stay bounded and return to the baseline",
            ProcessesHealthy => "no process panics, logs an unknown error or ends unexpectedly",
            WebhookHeaders => "the webhook headers of each attempt are right",
            DurableAccept => "a submit is answered with 2xx only if the store has it",
            LossNoticed => "a store that lost its data is noticed at once",
            SecretsHidden => "no secret appears in the history, in logs or in metrics",
        }
    }
}
