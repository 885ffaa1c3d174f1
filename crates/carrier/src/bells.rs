//! Bells: what wakes a sleeping holder before its time. A ring that comes while nobody
//! sleeps is kept.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ringback_core::contract::{Shard, Wake};
use ringback_service::Shutdown;
use ringback_store::Wakes;
use tokio::sync::Notify;
use tokio::time::Instant;

/// A bell per shard, one for a change among the carriers, and one for revivals.
pub(crate) struct Bells {
    shards: Vec<Bell>,
    members: Notify,
    revivals: Bell,
}

#[derive(Debug, Default)]
pub(crate) struct Bell {
    earliest: Mutex<Option<Instant>>,
    rung: Notify,
}

impl Bell {
    /// Rings for a moment; of several rings the earliest counts.
    pub(crate) fn ring(&self, at: Instant) {
        let mut earliest = self.earliest.lock().unwrap_or_else(PoisonError::into_inner);
        *earliest = Some(earliest.map_or(at, |known| known.min(at)));
        self.rung.notify_one();
    }

    /// Forgets what it was rung for.
    pub(crate) fn quiet(&self) {
        *self.earliest.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Waits for it; returns the moment it was rung for.
    pub(crate) async fn rung(&self) -> Instant {
        loop {
            self.rung.notified().await;
            if let Some(at) = self.earliest.lock().unwrap_or_else(PoisonError::into_inner).take() {
                return at;
            }
        }
    }
}

impl Bells {
    pub(crate) fn new(shards: impl Iterator<Item = Shard>) -> Self {
        Self {
            shards: shards.map(|_| Bell::default()).collect(),
            members: Notify::new(),
            revivals: Bell::default(),
        }
    }

    /// Waits for the shard's bell; returns the moment it was rung for.
    pub(crate) async fn rung(&self, shard: Shard) -> Instant {
        self.shards[usize::from(shard.number())].rung().await
    }

    /// Waits until a revival may be free; returns the moment from which on.
    pub(crate) async fn revival(&self) -> Instant {
        self.revivals.rung().await
    }

    /// A revival can be taken after so long.
    pub(crate) fn ring_revival(&self, after: Duration) {
        self.revivals.ring(Instant::now() + after);
    }

    /// Waits for a change among the carriers.
    pub(crate) async fn members_changed(&self) {
        self.members.notified().await;
    }

    /// Turns wake-ups into rings until the shutdown. A new subscription rings them all,
    /// since anything may have been missed before it.
    pub(crate) async fn listen(self: std::sync::Arc<Self>, mut wakes: Wakes, shutdown: Shutdown) {
        loop {
            let wake = tokio::select! {
                wake = wakes.next() => wake,
                () = shutdown.stopping() => return,
            };
            match wake {
                Wake::Subscribed => {
                    self.shards.iter().for_each(|bell| bell.ring(Instant::now()));
                    self.members.notify_one();
                    self.ring_revival(Duration::ZERO);
                }
                Wake::Due(shard, after) => self.ring(shard, after),
                Wake::Carriers => self.members.notify_one(),
                Wake::Redrive => self.ring_revival(Duration::ZERO),
                Wake::Ready(_) | Wake::Pull(..) => {}
            }
        }
    }

    fn ring(&self, shard: Shard, after: Duration) {
        if let Some(bell) = self.shards.get(usize::from(shard.number())) {
            bell.ring(Instant::now() + after);
        }
    }
}
