//! The invariants that a history is checked for, by number, with the sentence that each stands for.

use serde::{Deserialize, Serialize};

/// One invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[derive(strum::VariantArray)]
#[expect(missing_docs, reason = "`Invariant::meaning` has a sentence for each")]
pub enum Invariant {
    I1,
    I2,
    I3,
    I4,
    I5,
    I6,
    I7,
    I8,
    I9,
    I10,
    I11,
    I12,
    I13,
    I14,
    I15,
    I16,
    I17,
    I18,
    I19,
    I20,
    I21,
    I22,
    I23,
    I24,
    I25,
}

use Invariant::{
    I1, I2, I3, I4, I5, I6, I7, I8, I9, I10, I11, I12, I13, I14, I15, I16, I17, I18, I19, I20, I21, I22, I23,
    I24, I25,
};

impl Invariant {
    /// Its place among all invariants.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// What holds if it holds.
    pub const fn meaning(self) -> &'static str {
        match self {
            I1 => "an accepted job is delivered, dead or cancelled",
            I2 => "only what was submitted is delivered, unchanged",
            I3 => "nothing is delivered before it is due",
            I4 => "nothing is delivered after it was cancelled",
            I5 => "attempts are numbered upwards and end with the retry policy",
            I6 => "retries keep to the tiers, their jitter and Retry-After",
            I7 => "fencing tokens grow, and no stale holder has an effect",
            I8 => "a job has at most one live lease",
            I9 => "a job has one state, and changes it by the known edges",
            I10 => "every record is indexed, and no key is foreign",
            I11 => "counts of the ledger, the metrics and the history agree",
            I12 => "a complete 2xx is a success, and nothing else is",
            I13 => "nothing is delivered again without a fault to explain it",
            I14 => "a repeated submit makes no second job",
            I15 => "a stale receipt settles nothing",
            I16 => "a job is dead only for a reason that the history shows",
            I17 => "what is due is delivered within the bound, and the backlog drains",
            I18 => "a hostile tenant does not delay the others",
            I19 => "the lateness of each delivery is known",
            I20 => "memory, handles and tasks stay bounded and return to the baseline",
            I21 => "no process panics, logs an unknown error or ends unexpectedly",
            I22 => "the webhook headers of each attempt are right",
            I23 => "a submit is answered with 2xx only if the store has it",
            I24 => "a store that lost its data is noticed at once",
            I25 => "no secret appears in the history, in logs or in metrics",
        }
    }
}
