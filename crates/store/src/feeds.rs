//! Feeds in the store: which process works on one, how far it has come, and how often two have worked at once.

use ringback_core::store_types::{FeedHold, FeedLease, FeedName, FeedPosition, StoreError, StoredFeed};

use crate::backend::backend;
use crate::store::Store;

impl Store {
    /// Takes a feed that no process has, or keeps or gives back the caller's own; moves its position if `hold` says so.
    pub async fn hold_feed(&self, name: &FeedName, hold: FeedHold) -> Result<FeedLease, StoreError> {
        backend!(self.hold_feed(name, hold).await)
    }

    /// What is stored of a feed; the default for one that was never used.
    pub async fn feed(&self, name: &FeedName) -> Result<StoredFeed, StoreError> {
        backend!(self.change_feed(name, None, false).await)
    }

    /// Sets the position of a feed, even while a process has it, which notices when it next moves the position.
    pub async fn set_feed(&self, name: &FeedName, position: FeedPosition) -> Result<(), StoreError> {
        backend!(self.change_feed(name, Some(position), false).await).map(drop)
    }

    /// Counts that a process has worked on a feed after its lease had run out.
    pub async fn disturb_feed(&self, name: &FeedName) -> Result<(), StoreError> {
        backend!(self.change_feed(name, None, true).await).map(drop)
    }
}
