//! Feeds: leases a feed to a process, extends and ends the lease, moves the feed's position, and counts disturbances.

use std::time::Duration;

use bytes::Bytes;
use ringback_core::clock::millis_up;
use ringback_core::store_types::{
    FEED_RETENTION, FeedHold, FeedLease, FeedName, FeedPosition, MAX_FEED_LEASE, StoreError, StoredFeed,
};

use crate::keys::KeySpace;
use crate::redis_store::RedisStore;
use crate::script;

impl RedisStore {
    pub async fn hold_feed(&self, name: &FeedName, hold: FeedHold) -> Result<FeedLease, StoreError> {
        let FeedHold { worker, lasts, step } = hold;
        let (known, next) = step.map_or((None, None), |(known, next)| (known, Some(next)));
        let times = (millis_up(lasts), millis_up(MAX_FEED_LEASE), millis_up(FEED_RETENTION));
        let args = (name.as_str(), &worker.0, times, pack(known), pack(next));
        let answer =
            self.call(&script::HOLD_FEED, KeySpace::Installation).confirmed().arg(args).run().await?;
        let (is_held, left, at, disturbances): (bool, u64, Bytes, u64) = answer;
        let feed = StoredFeed { position: unpack(&at)?, disturbances };
        Ok(if is_held { FeedLease::Held(feed) } else { FeedLease::Free(Duration::from_millis(left)) })
    }

    /// Sets the position of a feed if one is given, counts a disturbance if `is_disturbed`, and returns the feed.
    pub async fn change_feed(
        &self,
        name: &FeedName,
        position: Option<FeedPosition>,
        is_disturbed: bool,
    ) -> Result<StoredFeed, StoreError> {
        let is_disturbed = if is_disturbed { "1" } else { "" };
        let args = (name.as_str(), millis_up(FEED_RETENTION), pack(position), is_disturbed);
        let answer =
            self.call(&script::CHANGE_FEED, KeySpace::Installation).confirmed().arg(args).run().await?;
        let (at, disturbances): (Bytes, u64) = answer;
        Ok(StoredFeed { position: unpack(&at)?, disturbances })
    }
}

/// Packs a position as it is stored; empty for none.
fn pack(position: Option<FeedPosition>) -> Vec<u8> {
    let pack = |position| postcard::to_stdvec(&position).expect("plain data always serialises");
    position.map(pack).unwrap_or_default()
}

fn unpack(raw: &[u8]) -> Result<Option<FeedPosition>, StoreError> {
    let read =
        |_: &u8| postcard::from_bytes(raw).map_err(|_| StoreError::Unreadable("the position of a feed"));
    raw.first().map(read).transpose()
}
