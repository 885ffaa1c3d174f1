//! The reserve edge: what a notifier asks for, and the leases it gets.

use std::time::Duration;

use super::lease::Lease;

/// What a notifier asks for.
#[derive(Clone, Debug)]
pub struct Reserve<'a> {
    /// Identifies the caller; unique per process.
    pub caller: &'a str,
    /// Counts the caller's reserves of this shard. Repeating a number returns the same leases again.
    pub sequence: u64,
    /// The most jobs to reserve.
    pub limit: usize,
    /// The most jobs of a lane that `lane_limits` does not name.
    pub lane_limit: usize,
    /// Limits of single lanes, by [name](crate::lane::Lane::name). A limit of 0 skips the lane.
    pub lane_limits: Vec<(String, usize)>,
    /// Random bits for the receipts.
    pub bits: [u8; 8],
    /// How much longer a lease lasts than its attempt's timeout. The timeout counts up to
    /// [`MAX_LEASE_STRETCH`](crate::limits::MAX_LEASE_STRETCH).
    pub margin: Duration,
}

/// The result of a reserve.
#[derive(Debug)]
pub struct Reserved {
    /// One lease per job.
    pub leases: Vec<Lease>,
    /// Whether more jobs could be reserved now.
    pub more: bool,
    /// Lanes that have more jobs but were skipped or used up their limit.
    pub skipped: Vec<String>,
}
