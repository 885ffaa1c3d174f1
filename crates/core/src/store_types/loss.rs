//! A loss of accepted jobs: the store was emptied, or came back with older data. Also the result of accepting a loss.

use std::fmt;

/// A loss that was noticed. Submits may be refused until it is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The `run_id` of the server as it runs without the jobs. It names the loss.
    pub run_id: String,
    /// How many jobs are missing, as far as it is known. 0 if the store is known to be another one, but not what was
    /// in it.
    pub jobs: u64,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { run_id, jobs } = self;
        write!(f, "at least {jobs} accepted jobs (run_id {run_id})")
    }
}

/// The result of accepting a loss.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcceptLoss {
    /// The loss is accepted, now or before.
    Accepted(Loss),
    /// No loss has this `run_id`. The one that waits to be accepted, if any.
    Unknown(Option<Loss>),
}
