//! Changes of a single job by its key (cancel, reschedule, run, revive and purge): their arguments and results.

use crate::job::{Due, Job};
pub use crate::token::Token;

/// The result of a cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// There is no job with this key.
    Unknown,
    /// The job is cancelled, by this call or an earlier one.
    Cancelled {
        /// A delivery began and was never settled, so it may still be under way.
        in_flight_unknown: bool,
    },
    /// The job is being delivered. Unless the delivery succeeds, the job will be cancelled.
    Requested {
        /// The lease has run out, so it is not known whether the delivery is still under way.
        in_flight_unknown: bool,
    },
    /// The job is done.
    TooLate,
}

/// A change to one job.
#[derive(Clone, Copy, Debug)]
pub enum Move {
    /// delayed → delayed at another time, or ready.
    Reschedule(Due, Token),
    /// delayed → ready.
    Run(Token),
    /// dead → ready.
    Revive(Token),
    /// dead → gone.
    Purge,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MoveResult {
    /// The move is done, by this call or an earlier one with the same token. Contains the job as it is
    /// now; after a purge, as it was before.
    Applied(Job),
    /// The job's state does not allow the move. Nothing changed.
    Refused(Job),
    /// There is no job with this key.
    Unknown,
}
