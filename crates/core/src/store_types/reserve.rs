//! The reserve transition: what notifiers and consumers ask for, and the jobs they get. A consumer's jobs have no URL,
//! and are settled by their receipts. Also what decides about the retry of such a job.

use std::time::Duration;

use tokio::time::Instant;

use super::lease::Lease;
use super::receipt::Receipt;
use crate::clock::Timestamp;
use crate::job::{Delivery, JobKey, Topic};
use crate::retry::RetryPolicy;

/// A notifier's request to reserve jobs.
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
    /// Limits of single lanes, by [name](crate::lane::Lane::name). A limit of 0 leaves the lane out.
    pub lane_limits: Vec<(String, usize)>,
    /// Lanes with a limited destination that may give jobs, and how many: as many as the caller has places. Other such
    /// lanes give none.
    pub admitted: Vec<(String, usize)>,
    /// The most jobs whose URLs have the same origin, over all lanes, if `group_limits` does not name it.
    pub origin_limit: usize,
    /// The most jobs of a tenant, over all lanes, if `group_limits` does not name it. Jobs without a tenant have a
    /// limit only if [`NO_TENANT`](crate::lane::NO_TENANT) is named.
    pub tenant_limit: usize,
    /// Limits of groups of lanes: of single [origins](crate::lane::Lane::origin) and
    /// [tenants](crate::lane::Lane::tenant). A limit of 0 leaves the lanes of the group out.
    pub group_limits: Vec<(String, usize)>,
    /// Random bits for the receipts.
    pub bits: [u8; 8],
    /// Whether the caller waits for due jobs.
    pub waiting: Waiting,
    /// How much longer a lease lasts than its attempt's timeout. The timeout counts up to
    /// [`MAX_LEASE_STRETCH`](crate::limits::MAX_LEASE_STRETCH).
    pub margin: Duration,
}

/// Whether the caller of a reserve waits for due jobs. A store may let one caller per shard wait: it takes due jobs without
/// a carrier, and learns when the next one is due. A carrier makes due jobs ready that it does not take in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// The caller takes ready jobs only.
    No,
    /// The caller waits, if no other does.
    Yes,
    /// The caller waits no longer.
    NoLonger,
}

/// The result of a reserve.
#[derive(Debug)]
pub struct Reserved {
    /// One lease per job.
    pub leases: Vec<Lease>,
    /// Whether more jobs could be reserved now.
    pub more: bool,
    /// Whether these can only be of deferred lanes. A call looks at a few of them, so there is no hurry.
    pub is_more_later: bool,
    /// Whether throttled lanes that hid others were deferred: the next reserve finds the others.
    pub has_deferred: bool,
    /// Lanes that have more jobs than their limit allows.
    pub full: Vec<String>,
    /// Origins and tenants whose limit is reached, with lanes that have more jobs. Of a lane whose origin and tenant are
    /// both at their limits, at least the one that is fuller.
    pub throttled: Vec<String>,
    /// Lanes with ready jobs whose destination has limits, and how many these are: they give jobs to a caller that names
    /// them as admitted. A call says this of those that it found, and of a few others.
    pub limited: Vec<(String, u32)>,
    /// When to reserve next if the caller waits for due jobs: when the next one is due, or earlier. `None` if it does not
    /// wait.
    pub next_due: Option<Instant>,
}

/// A consumer's request to reserve jobs.
#[derive(Clone, Copy, Debug)]
pub struct Pull<'a> {
    /// Identifies the caller, who makes one call at a time.
    pub caller: &'a str,
    /// Counts the caller's reserves of this shard. Repeating a number returns the same jobs again.
    pub sequence: u64,
    pub topic: &'a Topic,
    /// The most jobs to reserve.
    pub limit: usize,
    /// How long the leases last; `None`: as long as each job says.
    pub ttr: Option<Duration>,
    /// How long a lease lasts if neither the consumer nor the job says.
    pub default_ttr: Duration,
    /// Random bits for the receipts.
    pub bits: [u8; 8],
}

/// The result of a consumer's reserve.
#[derive(Debug, Default)]
pub struct Pulled {
    pub jobs: Vec<PulledJob>,
    /// Whether more jobs could be reserved now.
    pub more: bool,
    /// The store's time.
    pub now: Timestamp,
}

/// A job that a consumer has reserved.
#[derive(Clone, Debug)]
pub struct PulledJob {
    pub receipt: Receipt,
    pub key: JobKey,
    /// The number of this attempt, from 1.
    pub attempt: u32,
    /// When the lease runs out, by the store's clock.
    pub deadline: Timestamp,
    /// When the job expires, if it does.
    pub expires: Option<Timestamp>,
    /// The body and what belongs to it.
    pub delivery: Delivery,
}

/// The facts that decide when a job is retried if it fails now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RetryContext {
    /// How many attempts have failed so far.
    pub failures: u32,
    /// When the job was first due.
    pub first_due: Timestamp,
    /// When it expires, if it does.
    pub expires: Option<Timestamp>,
    /// The job's own policy, if it has one.
    pub retry: Option<RetryPolicy>,
    /// The job's topic, whose policy counts otherwise; `None` if it is not known.
    pub topic: Option<Topic>,
}

/// The leases that a settle by receipt accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseCheck {
    Current,
    /// Only leases that have run out.
    Expired,
}
