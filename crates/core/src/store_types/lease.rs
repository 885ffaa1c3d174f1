//! A lease: the right of a notifier to deliver one job until a deadline, and to settle it. Also the store's clock as
//! the process knows it, and the results of renewing and settling leases.

use std::time::Duration;

use tokio::time::Instant;

use super::error::StoreError;
use super::outbox::Success;
use super::receipt::Receipt;
use super::shard::Shard;
use crate::clock::Timestamp;
use crate::job::{Delivery, JobKey, Locator};
use crate::lane::SettleHint;
use crate::outcome::Outcome;

/// The store's clock as this process knows it: a reading, and the local time before it was requested.
///
/// The reading was taken after `asked` and before the reply arrived. So this clock is never behind
/// the store's clock, and ahead of it by at most one round trip.
#[derive(Clone, Copy, Debug)]
pub struct StoreClock {
    /// The reading, in microseconds since the Unix epoch.
    pub shown_us: u64,
    /// The local time before it was requested.
    pub asked: Instant,
}

impl StoreClock {
    /// The store's time at a local instant. An instant before the reading counts as the reading.
    pub fn at(&self, instant: Instant) -> Timestamp {
        Timestamp::from_millis((self.shown_us + self.elapsed_us(instant)) / 1000)
    }

    /// How much later than `due` a local instant is, by the store's clock; zero if it is earlier.
    pub fn since(&self, due: Timestamp, instant: Instant) -> Duration {
        let at = self.shown_us + self.elapsed_us(instant);
        Duration::from_micros(at.saturating_sub(due.as_millis().saturating_mul(1000)))
    }

    fn elapsed_us(&self, instant: Instant) -> u64 {
        u64::try_from(instant.saturating_duration_since(self.asked).as_micros()).unwrap_or(u64::MAX)
    }
}

/// The part of a lease that a backend needs to renew and settle it.
#[derive(Debug)]
pub struct LeaseGrant {
    /// Identifies the lease and the job.
    pub receipt: Receipt,
    /// When the lease runs out, by the local clock and never later than in the store.
    pub deadline: Instant,
    pub clock: StoreClock,
    /// What a settle on Redis needs of the job's record.
    pub hint: SettleHint,
    /// Whether somebody watched the shard's events when the job was reserved.
    pub is_watched: bool,
}

/// One reserved push job.
#[derive(Debug)]
pub struct Lease {
    /// What the backend knows of the lease.
    pub grant: LeaseGrant,
    /// The status of the response, and how long it took in ms, if that was recorded.
    pub response: Option<(u16, u32)>,
    /// The answer of a receiver that has accepted the job, if somebody wants to know of its success.
    pub success: Option<Box<Success>>,
    pub key: JobKey,
    /// What to deliver, and how.
    pub delivery: Delivery,
    /// When this attempt was due.
    pub due: Timestamp,
    /// When the job was first due: the due time with which it was accepted.
    pub first_due: Timestamp,
    /// When the job was accepted.
    pub created: Timestamp,
    /// The number of this attempt, from 1.
    pub attempt: u32,
    /// How many attempts have failed so far.
    pub failures: u32,
}

impl Lease {
    /// When the job expires; `None` if it does not, or if it became due after its expiry.
    pub fn expires(&self) -> Option<Timestamp> {
        self.delivery.expires?.of(self.due, self.first_due)
    }

    pub const fn shard(&self) -> Shard {
        self.grant.receipt.shard
    }

    /// The job's place in its shard. Together with `created` it identifies the job, even if another one
    /// has had the same key.
    pub const fn locator(&self) -> Locator {
        self.grant.receipt.locator
    }

    /// When the lease runs out, by the local clock and never later than in the store.
    pub const fn deadline(&self) -> Instant {
        self.grant.deadline
    }

    pub const fn clock(&self) -> StoreClock {
        self.grant.clock
    }

    /// Records the receiver's response, for the event of a successful attempt. Does nothing if nobody watched the
    /// shard's events when the job was reserved.
    pub fn record_response(&mut self, status: u16, took: Duration) {
        if self.grant.is_watched {
            self.response = Some((status, u32::try_from(took.as_millis()).unwrap_or(u32::MAX)));
        }
    }

    /// Records a renewal for `by` that was requested at `asked`, by the local clock. Never makes the deadline earlier.
    pub fn renewed(&mut self, asked: Instant, by: Duration) {
        self.grant.deadline = self.grant.deadline.max(asked + by);
    }
}

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
pub enum SettleResult {
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
