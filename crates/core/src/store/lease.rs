//! A lease: the right to hand one job over until a deadline, and the only value that can
//! settle it.

use std::time::Duration;

use tokio::time::Instant;

use super::Shard;
use super::redis::Imprint;
use crate::clock::Timestamp;
use crate::job::{Delivery, JobKey, Locator};

/// Proof of one lease: a number of the shard that only grows, and random bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Receipt {
    pub(crate) number: u64,
    pub(crate) bits: [u8; 8],
}

/// The store's clock as seen from here: what it showed, and when that was asked for.
///
/// It was read after `asked` and before the answer came, so this clock is never behind
/// the store's, and ahead of it by at most one round trip.
#[derive(Clone, Copy, Debug)]
pub struct StoreClock {
    pub(crate) shown_us: u64,
    pub(crate) asked: Instant,
}

impl StoreClock {
    /// The store's time at a local instant.
    pub fn at(&self, instant: Instant) -> Timestamp {
        Timestamp::from_millis((self.shown_us + self.elapsed_us(instant)) / 1000)
    }

    /// How long after `due` a local instant is, by the store's clock.
    pub fn since(&self, due: Timestamp, instant: Instant) -> Duration {
        let at = self.shown_us + self.elapsed_us(instant);
        Duration::from_micros(at.saturating_sub(due.as_millis().saturating_mul(1000)))
    }

    fn elapsed_us(&self, instant: Instant) -> u64 {
        u64::try_from(instant.saturating_duration_since(self.asked).as_micros()).unwrap_or(u64::MAX)
    }
}

/// One reserved job.
#[derive(Debug)]
pub struct Lease {
    pub(crate) shard: Shard,
    pub(crate) locator: Locator,
    pub(crate) receipt: Receipt,
    pub(crate) deadline: Instant,
    pub(crate) clock: StoreClock,
    /// What the store on Redis wants told again when it is settled.
    pub(super) imprint: Imprint,
    /// Somebody watched the shard when the job was reserved.
    pub(super) is_watched: bool,
    /// What a success was answered, in the eyes of who watches: the status, and how long it took in ms.
    pub(super) seen: Option<(u16, u32)>,
    /// The job's name.
    pub key: JobKey,
    /// What to hand over.
    pub delivery: Delivery,
    /// When this attempt was due.
    pub due: Timestamp,
    /// When the job was accepted.
    pub created: Timestamp,
    /// Which hand-over this is, from 1.
    pub attempt: u32,
    /// How many attempts have failed so far.
    pub failures: u32,
}

impl Lease {
    /// The shard that the job lies in.
    pub const fn shard(&self) -> Shard {
        self.shard
    }

    /// Where the job lies in its shard; with the time of acceptance it names the job's life.
    pub const fn locator(&self) -> Locator {
        self.locator
    }

    /// When the lease runs out, by the local clock and never later than for the store.
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// What was answered, to be told where the job is complete. It is kept only where somebody
    /// watched when the job was reserved.
    pub fn saw(&mut self, status: u16, took: Duration) {
        if self.is_watched {
            self.seen = Some((status, u32::try_from(took.as_millis()).unwrap_or(u32::MAX)));
        }
    }

    /// It was renewed for so long, counted from when that was asked. Never shortens it.
    pub(super) fn renewed(&mut self, asked: Instant, by: Duration) {
        self.deadline = self.deadline.max(asked + by);
    }

    /// The store's clock.
    pub const fn clock(&self) -> StoreClock {
        self.clock
    }
}
