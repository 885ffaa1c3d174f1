//! `Lease`: the right of one process to run a feed for some seconds, renewed while it runs. A process stops submitting
//! before its lease ends, because a late submit could undo what the next process has loaded; it reports if it was late.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ringback_core::store_types::{
    FeedHold, FeedLease, FeedName, FeedPosition, StoreError, StoredFeed, WorkerId,
};
use ringback_store::Store;
use tokio::time::{Instant, sleep};

/// How often a lease is renewed within its time.
const RENEWALS: u32 = 4;
/// How soon a failed renewal is tried again.
const RETRY: Duration = Duration::from_millis(100);
/// The part of its time, here a third, before the end of a lease in which no call is begun. A call takes at most as
/// long.
const MARGIN: u32 = 3;
/// How long at most until a process tries again to take a feed of another one.
const LOOK: Duration = Duration::from_secs(5);

/// The lease of a feed, which this process has or tries to take.
pub(crate) struct Lease {
    store: Store,
    name: FeedName,
    worker: WorkerId,
    /// How long a lease lasts.
    lasts: Duration,
    until: Mutex<Instant>,
}

/// The feed belongs to another process, or may do so soon.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Lost {
    #[error("another process has the feed")]
    Taken,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Lease {
    pub(crate) fn new(store: Store, name: FeedName, worker: WorkerId, lasts: Duration) -> Self {
        Self { store, name, worker, lasts, until: Mutex::new(Instant::now()) }
    }

    /// Takes the feed if no other process has it, and returns it. Otherwise returns how long to wait before the next
    /// try.
    ///
    /// # Errors
    /// If the store fails.
    pub(crate) async fn take(&self) -> Result<Result<StoredFeed, Duration>, StoreError> {
        Ok(match self.hold(self.lasts, None).await? {
            FeedLease::Held(feed) => Ok(feed),
            FeedLease::Free(left) => Err(left.clamp(RETRY, LOOK)),
        })
    }

    /// Renews the lease, and moves the position of the feed if `step` says from where to where.
    ///
    /// # Errors
    /// If another process has the feed, or the store fails.
    pub(crate) async fn renew(
        &self,
        step: Option<(Option<FeedPosition>, FeedPosition)>,
    ) -> Result<StoredFeed, Lost> {
        match self.hold(self.lasts, step).await? {
            FeedLease::Held(feed) => Ok(feed),
            FeedLease::Free(_) => Err(Lost::Taken),
        }
    }

    /// Renews the lease in time, and returns when it is lost: another process has it, or it could not be renewed until
    /// a third of its time was left.
    pub(crate) async fn keep(&self) {
        let (renew, margin) = (self.lasts / RENEWALS, self.lasts / MARGIN);
        let mut wait = renew;
        loop {
            sleep(wait).await;
            wait = match self.renew(None).await {
                Ok(_) => renew,
                Err(Lost::Taken) => return,
                Err(Lost::Store(_)) => RETRY,
            };
            if Instant::now() + margin > self.until() {
                return;
            }
        }
    }

    /// Ends the lease, so that another process can take the feed at once. If the store fails, the lease runs out.
    pub(crate) async fn give_back(&self) {
        drop(self.hold(Duration::ZERO, None).await);
    }

    /// Tells the store, after the lease was lost, that the last submits of this process may have undone some of the
    /// next process.
    ///
    /// # Errors
    /// If the store fails.
    pub(crate) async fn disturb(&self) -> Result<(), StoreError> {
        self.store.disturb_feed(&self.name).await
    }

    async fn hold(
        &self,
        lasts: Duration,
        step: Option<(Option<FeedPosition>, FeedPosition)>,
    ) -> Result<FeedLease, StoreError> {
        let asked = Instant::now();
        let lease = self.store.hold_feed(&self.name, FeedHold { worker: self.worker, lasts, step }).await?;
        if let FeedLease::Held(_) = lease {
            *self.until.lock().unwrap_or_else(PoisonError::into_inner) = asked + lasts;
        }
        Ok(lease)
    }

    fn until(&self) -> Instant {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
