//! Policies by topic, for all shards. The row without a topic holds their version, which grows
//! with each change.

use ringback_core::contract::StoreError;

use super::rows::{Access, Rows, Writing};
use crate::error::Result;

/// The key of the version: no topic has an empty name.
const VERSION: &str = "";

pub(crate) struct Policies<A: Access>(pub(crate) Rows<A, &'static str, &'static str>);

impl<A: Access> Policies<A> {
    /// The version of all policies together; 0 before the first change.
    pub(crate) fn version(&self) -> Result<u64> {
        let version = self.0.read(VERSION, str::parse)?.unwrap_or(Ok(0));
        Ok(version.map_err(|_| StoreError::Unreadable("a version"))?)
    }

    /// A topic's policy as it was written.
    pub(crate) fn get(&self, topic: &str) -> Result<Option<String>> {
        self.0.read(topic, str::to_owned)
    }

    pub(crate) fn count(&self) -> Result<u64> {
        Ok(self.0.len()? - u64::from(self.0.has(VERSION)?))
    }

    /// The policies of the first topics whose names come after `topic`.
    pub(crate) fn after(&self, topic: &str, limit: usize) -> Result<Vec<(String, String)>> {
        use std::ops::Bound::{Excluded, Unbounded};
        let later = (Excluded(topic), Unbounded);
        self.0.list::<&str, _>(later, limit, |topic, written| (topic.to_owned(), written.to_owned()))
    }
}

impl Policies<Writing<'_>> {
    /// Returns the new version.
    pub(crate) fn put(&mut self, topic: &str, written: &str, now_us: u64) -> Result<u64> {
        self.0.insert(topic, written)?;
        self.next_version(now_us)
    }

    /// Returns the new version; `None` if the topic has no policy.
    pub(crate) fn remove(&mut self, topic: &str, now_us: u64) -> Result<Option<u64>> {
        if self.0.remove(topic)?.is_none() {
            return Ok(None);
        }
        self.next_version(now_us).map(Some)
    }

    fn next_version(&mut self, now_us: u64) -> Result<u64> {
        let version = now_us.max(self.version()? + 1);
        self.0.insert(VERSION, version.to_string().as_str())?;
        Ok(version)
    }
}
