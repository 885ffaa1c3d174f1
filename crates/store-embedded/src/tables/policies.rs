//! Policies by topic, for all shards. Two rows are not about a topic: one holds the version of all
//! policies, which grows with each change, the other the topics whose policy asks for metrics of their own.

use std::collections::BTreeSet;

use ringback_core::store_types::StoreError;

use super::rows::{Access, Rows, Writing};
use crate::error::Result;

/// The key of the version: no topic has an empty name.
const VERSION: &str = "";
/// The key of the topics with metrics, which are separated by spaces. It comes before every topic.
const WITH_METRICS: &str = " metrics";

pub(crate) struct Policies<A: Access>(pub(crate) Rows<A, &'static str, &'static str>);

impl<A: Access> Policies<A> {
    /// The version of all policies together; 0 before the first change.
    pub(crate) fn version(&self) -> Result<u64> {
        let version = self.0.read(VERSION, str::parse)?.unwrap_or(Ok(0));
        Ok(version.map_err(|_| StoreError::Unreadable("a version"))?)
    }

    /// Returns a topic's policy as it was written; `None` if it has none.
    pub(crate) fn get(&self, topic: &str) -> Result<Option<String>> {
        self.0.read(topic, str::to_owned)
    }

    pub(crate) fn count(&self) -> Result<u64> {
        let others = u64::from(self.0.has(VERSION)?) + u64::from(self.0.has(WITH_METRICS)?);
        Ok(self.0.len()? - others)
    }

    /// Returns the topics whose policy asks for metrics of their own.
    pub(crate) fn with_metrics(&self) -> Result<BTreeSet<String>> {
        let read = |topics: &str| topics.split_whitespace().map(str::to_owned).collect();
        Ok(self.0.read(WITH_METRICS, read)?.unwrap_or_default())
    }

    /// Returns the policies of the first `limit` topics whose names come after `topic`.
    pub(crate) fn after(&self, topic: &str, limit: usize) -> Result<Vec<(String, String)>> {
        use std::ops::Bound::{Excluded, Unbounded};
        let later = (Excluded(topic.max(WITH_METRICS)), Unbounded);
        self.0.list::<&str, _>(later, limit, |topic, written| (topic.to_owned(), written.to_owned()))
    }
}

impl Policies<Writing<'_>> {
    /// Stores a topic's policy, and returns the new version.
    pub(crate) fn put(&mut self, topic: &str, written: &str, now_us: u64) -> Result<u64> {
        self.0.insert(topic, written)?;
        self.next_version(now_us)
    }

    /// Removes a topic's policy, and returns the new version; `None` if the topic had no policy.
    pub(crate) fn remove(&mut self, topic: &str, now_us: u64) -> Result<Option<u64>> {
        if self.0.remove(topic)?.is_none() {
            return Ok(None);
        }
        self.next_version(now_us).map(Some)
    }

    /// Replaces the topics with metrics. They are few.
    pub(crate) fn set_with_metrics(&mut self, topics: BTreeSet<String>) -> Result<()> {
        if topics.is_empty() {
            return self.0.remove(WITH_METRICS).map(drop);
        }
        self.0.insert(WITH_METRICS, topics.into_iter().collect::<Vec<_>>().join(" ").as_str())
    }

    fn next_version(&mut self, now_us: u64) -> Result<u64> {
        let version = now_us.max(self.version()? + 1);
        self.0.insert(VERSION, version.to_string().as_str())?;
        Ok(version)
    }
}
