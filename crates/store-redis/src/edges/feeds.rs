//! Feeds: which process works on one, and how far it has come.

use std::time::Duration;

use ringback_core::clock::{Timestamp, millis_up};
use ringback_core::contract::{
    FEED_RETENTION, FeedHold, FeedLease, FeedName, FeedPosition, MAX_FEED_LEASE, StoreError, StoredFeed,
};

use crate::redis_store::RedisStore;
use crate::script;

/// Between a position that an operator has set and that of the last complete pass.
const SET: char = '!';

impl RedisStore {
    pub async fn hold_feed(&self, name: &FeedName, hold: FeedHold) -> Result<FeedLease, StoreError> {
        let FeedHold { worker, lasts, step } = hold;
        let (known, next) = step.map_or((None, None), |(known, next)| (known, Some(next)));
        let times = (millis_up(lasts), millis_up(MAX_FEED_LEASE), millis_up(FEED_RETENTION));
        let args = (name.as_str(), &worker.0, times, pack(known), pack(next));
        let answer = self.ask_installation_confirmed(&script::HOLD_FEED, args).await?;
        let (is_held, left, at, disturbances): (bool, u64, String, u64) = answer;
        let feed = StoredFeed { position: unpack(&at)?, disturbances };
        Ok(if is_held { FeedLease::Held(feed) } else { FeedLease::Free(Duration::from_millis(left)) })
    }

    /// Reads a feed, after setting its position and noting a disturbance.
    pub async fn change_feed(
        &self,
        name: &FeedName,
        position: Option<FeedPosition>,
        is_disturbed: bool,
    ) -> Result<StoredFeed, StoreError> {
        let is_disturbed = if is_disturbed { "1" } else { "" };
        let args = (name.as_str(), millis_up(FEED_RETENTION), pack(position), is_disturbed);
        let answer = self.ask_installation_confirmed(&script::CHANGE_FEED, args).await?;
        let (at, disturbances): (String, u64) = answer;
        Ok(StoredFeed { position: unpack(&at)?, disturbances })
    }
}

/// A position as text, as it is stored: ms, and behind a mark those of the last complete pass if it was set.
fn pack(position: Option<FeedPosition>) -> String {
    let Some(FeedPosition { at, passed }) = position else { return String::new() };
    let passed = passed.map(|passed| format!("{SET}{}", passed.as_millis()));
    format!("{}{}", at.as_millis(), passed.unwrap_or_default())
}

fn unpack(text: &str) -> Result<Option<FeedPosition>, StoreError> {
    if text.is_empty() {
        return Ok(None);
    }
    let time = |ms: &str| {
        let ms = ms.parse().map_err(|_| StoreError::Unreadable("the position of a feed"));
        ms.map(Timestamp::from_millis)
    };
    let (at, passed) = text.split_once(SET).map_or((text, None), |(at, passed)| (at, Some(passed)));
    Ok(Some(FeedPosition { at: time(at)?, passed: passed.map(time).transpose()? }))
}
