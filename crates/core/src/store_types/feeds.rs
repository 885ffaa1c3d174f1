//! Feeds, which load rows of a database as jobs: their names, which process loads one, and how far it has come. What a
//! feed loads and from where, only that process knows.

use std::fmt::{self, Display};
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::bulk::WorkerId;
use crate::clock::Timestamp;

pub const MAX_FEED_LEASE: Duration = Duration::from_secs(60);
/// How long a feed is kept that nobody loads.
pub const FEED_RETENTION: Duration = Duration::from_secs(90 * 24 * 60 * 60);
/// The longest name of a feed, in bytes.
const MAX_NAME: usize = 64;

/// The name of a feed: 1 to 64 of `A-Z a-z 0-9 . _ -`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FeedName(String);

/// The text is not a name of a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to {MAX_NAME} of A-Z a-z 0-9 . _ -")]
pub struct InvalidFeedName;

impl FeedName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for FeedName {
    type Err = InvalidFeedName;

    fn from_str(text: &str) -> Result<Self, InvalidFeedName> {
        let is_inside = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
        if is_inside && (1..=MAX_NAME).contains(&text.len()) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidFeedName)
        }
    }
}

impl Display for FeedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The position of a feed in its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedPosition {
    /// When the last complete pass began; or, if an operator has set it, the due time from which rows are wanted.
    pub at: Timestamp,
    /// When the last complete pass began, if an operator has set `at` since.
    pub passed: Option<Timestamp>,
}

/// A process's request to work on a feed: for how long, and which position to set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedHold {
    pub worker: WorkerId,
    /// For how long the feed is its own; zero gives it back. At most [`MAX_FEED_LEASE`].
    pub lasts: Duration,
    /// The position that it knows, and the one that takes its place. Another position than the known one stays.
    pub step: Option<(Option<FeedPosition>, FeedPosition)>,
}

/// The answer to a [`FeedHold`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedLease {
    Held(StoredFeed),
    /// It has none, as it wanted or because another process has it: for so long, unless that one keeps it. Nothing else
    /// was changed.
    Free(Duration),
}

/// The stored state of a feed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFeed {
    /// How far it has come; `None` before its first pass is complete.
    pub position: Option<FeedPosition>,
    /// How often a process has noticed that it loaded rows after its lease had run out, so that what the next one has
    /// loaded since may have been changed back.
    pub disturbances: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_plain() {
        for name in ["a", "orders.unpaid_30-min", &"x".repeat(64)] {
            assert_eq!(name.parse::<FeedName>().unwrap().to_string(), name);
        }
        for name in ["", "a b", "a/b", "é", &"x".repeat(65)] {
            assert_eq!(name.parse::<FeedName>(), Err(InvalidFeedName), "{name}");
        }
    }
}
