//! Policies by topic, of no shard. The row without a topic has their version, which grows with
//! each change.

use redb::{ReadableTable as _, ReadableTableMetadata as _, TableDefinition, WriteTransaction};
use ringback_core::contract::StoreError;

use super::rows::{Journal, Name, Rows};

const POLICIES: TableDefinition<'static, &str, &str> = TableDefinition::new("policies");
/// No topic's name is empty.
const VERSION: &str = "";

pub(crate) struct Policies<'t>(pub(crate) Rows<'t, &'static str, &'static str>);

impl<'t> Policies<'t> {
    pub(crate) fn open(txn: &'t WriteTransaction, journal: &'t Journal) -> Result<Self, StoreError> {
        Ok(Self(Rows::open(txn, journal, Name::Policies, POLICIES)?))
    }

    /// 0 before the first change.
    pub(crate) fn version(&self) -> Result<u64, StoreError> {
        let number = self.0.get(VERSION)?.map(|text| text.value().parse());
        number.transpose().map(Option::unwrap_or_default).map_err(|_| StoreError::Unreadable("a version"))
    }

    pub(crate) fn get(&self, topic: &str) -> Result<Option<String>, StoreError> {
        Ok(self.0.get(topic)?.map(|text| text.value().to_owned()))
    }

    pub(crate) fn count(&self) -> Result<u64, StoreError> {
        let has_version = self.0.get(VERSION)?.is_some();
        Ok(self.0.len()? - u64::from(has_version))
    }

    /// The first of those behind a topic.
    pub(crate) fn after(&self, topic: &str, limit: usize) -> Result<Vec<(String, String)>, StoreError> {
        use std::ops::Bound::{Excluded, Unbounded};
        let rows = self.0.range::<&str>((Excluded(topic), Unbounded))?.take(limit);
        rows.map(|row| {
            let (topic, text) = row?;
            Ok((topic.value().to_owned(), text.value().to_owned()))
        })
        .collect()
    }

    pub(crate) fn put(&mut self, topic: &str, written: &str, now_us: u64) -> Result<u64, StoreError> {
        self.0.insert(topic, written)?;
        self.change(now_us)
    }

    /// The version, where there was one.
    pub(crate) fn remove(&mut self, topic: &str, now_us: u64) -> Result<Option<u64>, StoreError> {
        if self.0.remove(topic)?.is_none() {
            return Ok(None);
        }
        self.change(now_us).map(Some)
    }

    fn change(&mut self, now_us: u64) -> Result<u64, StoreError> {
        let version = now_us.max(self.version()? + 1);
        self.0.insert(VERSION, version.to_string().as_str())?;
        Ok(version)
    }
}
