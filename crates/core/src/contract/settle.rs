//! Results of settling and renewing leases.

use super::error::StoreError;
use super::lease::Lease;
use crate::outcome::Outcome;

/// The result of a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewed {
    /// The lease has a later deadline.
    Extended,
    /// The lease is not current any more.
    Stale,
}

/// The result of settling one lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// The outcome took effect.
    Applied,
    /// The same outcome had taken effect before.
    Replayed,
    /// The lease had run out, but the success still counted.
    Late,
    /// The lease was not current any more. Nothing changed.
    Stale,
}

/// A settle that failed as a whole. It returns the leases, so that the caller can try again.
#[derive(Debug)]
pub struct Unsettled {
    /// Why it failed.
    pub error: StoreError,
    /// The leases with their outcomes.
    pub items: Vec<(Lease, Outcome)>,
}
