//! Feeds: leases a feed to a process, extends and ends the lease, moves the feed's position, and counts disturbances.

use std::time::Duration;

use ringback_core::clock::millis_up;
use ringback_core::store_types::{
    FEED_RETENTION, FeedHold, FeedLease, FeedName, FeedPosition, MAX_FEED_LEASE, StoreError, StoredFeed,
};

use crate::error::Result;
use crate::tables::FeedRow;
use crate::txn::Txn;
use crate::{ANY_SHARD, EmbeddedStore};

/// About how many bytes a call writes.
const BYTES: usize = 256;

impl EmbeddedStore {
    pub async fn hold_feed(&self, name: &FeedName, hold: FeedHold) -> Result<FeedLease, StoreError> {
        let name = name.clone();
        self.call(ANY_SHARD, BYTES, move |txn| take(txn, &name, hold)).await
    }

    /// Sets the position of a feed if one is given, counts a disturbance if `is_disturbed`, and returns the feed.
    pub async fn change_feed(
        &self,
        name: &FeedName,
        position: Option<FeedPosition>,
        is_disturbed: bool,
    ) -> Result<StoredFeed, StoreError> {
        let name = name.clone();
        self.call(ANY_SHARD, BYTES, move |txn| change(txn, &name, position, is_disturbed)).await
    }
}

fn take(txn: &mut Txn<'_>, name: &FeedName, hold: FeedHold) -> Result<FeedLease> {
    let mut feed = txn.tables.feeds.get(name.as_str())?.unwrap_or_default();
    let (mut left, longest) = (feed.until.saturating_sub(txn.now()), millis_up(MAX_FEED_LEASE));
    if left > longest {
        // The lease was stored before the clock was set back.
        left = longest;
        feed.until = txn.now() + longest;
        put(txn, name, &mut feed)?;
    }
    if feed.holder != hold.worker.0 && left > 0 {
        return Ok(FeedLease::Free(Duration::from_millis(left)));
    }
    let lasts = millis_up(hold.lasts);
    feed.holder = hold.worker.0;
    feed.until = if lasts > 0 { txn.now().saturating_add(lasts) } else { 0 };
    if lasts > 0
        && let Some((known, next)) = hold.step
        && feed.stored.position == known
    {
        feed.stored.position = Some(next);
    }
    put(txn, name, &mut feed)?;
    Ok(if lasts > 0 { FeedLease::Held(feed.stored) } else { FeedLease::Free(Duration::ZERO) })
}

fn change(
    txn: &mut Txn<'_>,
    name: &FeedName,
    position: Option<FeedPosition>,
    is_disturbed: bool,
) -> Result<StoredFeed> {
    let mut feed = txn.tables.feeds.get(name.as_str())?.unwrap_or_default();
    feed.stored.position = position.or(feed.stored.position);
    feed.stored.disturbances += u64::from(is_disturbed);
    if position.is_some() || is_disturbed {
        put(txn, name, &mut feed)?;
    }
    Ok(feed.stored)
}

fn put(txn: &mut Txn<'_>, name: &FeedName, feed: &mut FeedRow) -> Result<()> {
    feed.used = txn.now();
    let unused_since = txn.now().saturating_sub(millis_up(FEED_RETENTION));
    txn.tables.feeds.put(name.as_str(), feed, unused_since)
}
