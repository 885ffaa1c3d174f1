//! Feeds: which process works on one, and how far it has come.

use ringback_core::store_types::{FeedHold, FeedLease, FeedName, FeedPosition, StoreError, StoredFeed};

use crate::backend::backend;
use crate::store::Store;

impl Store {
    /// A process takes a feed that nobody has, keeps its own for longer, or gives it back, and moves its position.
    pub async fn hold_feed(&self, name: &FeedName, hold: FeedHold) -> Result<FeedLease, StoreError> {
        backend!(self.hold_feed(name, hold).await)
    }

    /// What is stored of a feed; nothing of one that was never used.
    pub async fn feed(&self, name: &FeedName) -> Result<StoredFeed, StoreError> {
        backend!(self.change_feed(name, None, false).await)
    }

    /// Sets the position of a feed, also while a process has it. That one notices when it next moves it.
    pub async fn set_feed(&self, name: &FeedName, position: FeedPosition) -> Result<(), StoreError> {
        backend!(self.change_feed(name, Some(position), false).await).map(drop)
    }

    /// Notes that a process has worked on a feed after its lease had run out.
    pub async fn disturb_feed(&self, name: &FeedName) -> Result<(), StoreError> {
        backend!(self.change_feed(name, None, true).await).map(drop)
    }
}
