//! Deadline signals: each wakes one sleeping task at a given time. A deadline that is set while nobody waits is kept.
//! [`DeadlineSignals`] holds those of a carrier and sets them when the store sends wake-ups.

use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ringback_core::store_types::{Shard, Wake};
use ringback_service::Shutdown;
use ringback_store::Wakes;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// A deadline that several tasks can set and one task waits for.
#[derive(Debug, Default)]
pub(crate) struct DeadlineSignal {
    earliest: Mutex<Option<Instant>>,
    changed: Notify,
}

impl DeadlineSignal {
    /// Sets the deadline, unless an earlier one is set, and wakes the waiting task.
    pub(crate) fn set(&self, at: Instant) {
        let mut earliest = self.lock();
        *earliest = Some(earliest.map_or(at, |known| known.min(at)));
        self.changed.notify_one();
    }

    pub(crate) fn clear(&self) {
        *self.lock() = None;
    }

    /// Waits until `until` or the deadline, whichever is earlier; without `until`, for a deadline only. Deadlines that
    /// are set meanwhile count too. A deadline that was seen is cleared, even if `until` comes first.
    pub(crate) async fn sleep_until(&self, mut until: Option<Instant>) {
        loop {
            let sleep = async {
                match until {
                    Some(until) => sleep_until(until).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                () = sleep => return,
                at = self.next() => until = Some(until.map_or(at, |until| until.min(at))),
            }
        }
    }

    /// Waits until a deadline is set, and returns and clears it.
    async fn next(&self) -> Instant {
        loop {
            self.changed.notified().await;
            if let Some(at) = self.lock().take() {
                return at;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.earliest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The signals of a carrier: one per shard, one for bulk operations, one for changes among the carriers.
pub(crate) struct DeadlineSignals {
    shards: Vec<DeadlineSignal>,
    /// Set to the time at which a bulk operation can be taken.
    pub(crate) bulks: DeadlineSignal,
    carriers: Notify,
}

impl DeadlineSignals {
    pub(crate) fn new(shards: impl Iterator<Item = Shard>) -> Self {
        Self {
            shards: shards.map(|_| DeadlineSignal::default()).collect(),
            bulks: DeadlineSignal::default(),
            carriers: Notify::new(),
        }
    }

    /// Returns the signal of a shard, set to the time at which one of its jobs is due.
    pub(crate) fn shard(&self, shard: Shard) -> &DeadlineSignal {
        &self.shards[usize::from(shard.number())]
    }

    /// Waits until the store announces a change of the list of carriers. An announcement before the call counts.
    pub(crate) async fn carriers_changed(&self) {
        self.carriers.notified().await;
    }

    /// Sets signals according to wake-ups, until the shutdown. A new subscription sets all signals to now, because
    /// wake-ups may have been missed before it. Wake-ups for ready and pull jobs are ignored.
    pub(crate) async fn listen(self: Arc<Self>, mut wakes: Wakes, shutdown: Shutdown) {
        loop {
            let wake = tokio::select! {
                biased;
                () = shutdown.stopping() => return,
                wake = wakes.next() => wake,
            };
            let now = Instant::now();
            match wake {
                Wake::Subscribed => {
                    self.shards.iter().for_each(|signal| signal.set(now));
                    self.carriers.notify_one();
                    self.bulks.set(now);
                }
                Wake::Due(shard, after) => self.set_shard(shard, now + after),
                Wake::Awaited { shard, after, grace } => self.set_shard(shard, now + after + grace),
                Wake::Carriers => self.carriers.notify_one(),
                Wake::Bulk => self.bulks.set(now),
                Wake::CancelRequested(_) | Wake::Ready(_) | Wake::Pull(..) => {}
            }
        }
    }

    fn set_shard(&self, shard: Shard, at: Instant) {
        if let Some(signal) = self.shards.get(usize::from(shard.number())) {
            signal.set(at);
        }
    }
}
