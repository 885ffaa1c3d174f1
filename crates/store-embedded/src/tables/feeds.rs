//! Feeds, by name: which process works on each until when, how far it has come, and when it was last used.

use ringback_core::store_types::StoredFeed;
use serde::{Deserialize, Serialize};

use super::rows::{Access, Rows, Writing, pack};
use crate::error::Result;

/// A feed; times are in ms. Packed with postcard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FeedRow {
    /// The process that works on the feed.
    pub(crate) holder: [u8; 8],
    /// When the process's lease ends; 0 if no process has one.
    pub(crate) until: u64,
    pub(crate) stored: StoredFeed,
    /// When the feed was last used.
    pub(crate) used: u64,
}

pub(crate) struct Feeds<A: Access>(pub(crate) Rows<A, &'static str, &'static [u8]>);

impl<A: Access> Feeds<A> {
    pub(crate) fn get(&self, name: &str) -> Result<Option<FeedRow>> {
        Ok(self.0.read(name, |raw| postcard::from_bytes(raw).ok())?.flatten())
    }
}

impl Feeds<Writing<'_>> {
    /// Stores a feed, and removes feeds that were last used before `unused_since`, in ms.
    pub(crate) fn put(&mut self, name: &str, row: &FeedRow, unused_since: u64) -> Result<()> {
        let mut unused = Vec::new();
        self.0.each(|name, raw| {
            let row = postcard::from_bytes::<FeedRow>(raw).ok();
            unused.extend(row.filter(|row| row.used < unused_since).map(|_| name.to_owned()));
            Ok(())
        })?;
        for name in unused {
            self.0.remove(name.as_str())?;
        }
        self.0.insert(name, pack(row).as_slice())
    }
}
