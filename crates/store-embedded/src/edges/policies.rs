//! The policies of topics: puts, deletes and reads them. They are read in pages, so that no call of
//! the writer takes long.

use ringback_core::contract::{PolicyPut, PolicyRows, PolicyVersion, Shard, StoreError};
use ringback_core::job::Topic;
use ringback_core::policy::MAX_POLICIES;

use crate::error::Result;
use crate::policy_changes::PolicyChanges;
use crate::txn::Txn;
use crate::{EDGE_BYTES, EmbeddedStore};

/// How many policies one call reads: a MiB at most.
const PAGE: usize = 64;
/// Policies belong to no shard, but calls need one.
const ANY: Shard = Shard(0);

impl EmbeddedStore {
    pub async fn put_policy(&self, topic: &Topic, written: &str) -> Result<PolicyPut, StoreError> {
        let (topic, written) = (topic.to_string(), written.to_owned());
        let bytes = topic.len() + written.len();
        let put = self.call(ANY, bytes, move |txn| put(txn, &topic, &written)).await?;
        self.shared.location.policies.send_replace(());
        Ok(put)
    }

    /// Returns the new version; `None` if the topic has no policy.
    pub async fn delete_policy(&self, topic: &Topic) -> Result<Option<PolicyVersion>, StoreError> {
        let topic = topic.to_string();
        let delete = move |txn: &mut Txn<'_>| {
            let now_us = txn.now_us();
            txn.tables.policies.remove(&topic, now_us)
        };
        let version = self.call(ANY, EDGE_BYTES, delete).await?;
        self.shared.location.policies.send_replace(());
        Ok(version.map(PolicyVersion))
    }

    pub async fn policy(&self, topic: &Topic) -> Result<Option<String>, StoreError> {
        let topic = topic.to_string();
        self.call(ANY, 0, move |txn| txn.tables.policies.get(&topic)).await
    }

    /// All policies and their version; `None` if that is `known`.
    pub async fn policies(
        &self,
        known: Option<PolicyVersion>,
    ) -> Result<Option<(PolicyVersion, PolicyRows)>, StoreError> {
        let version = PolicyVersion(self.call(ANY, 0, |txn| txn.tables.policies.version()).await?);
        if known == Some(version) {
            return Ok(None);
        }
        let (mut rows, mut after) = (PolicyRows::new(), String::new());
        loop {
            let from = after.clone();
            let page = self.call(ANY, 0, move |txn| txn.tables.policies.after(&from, PAGE)).await?;
            let is_last = page.len() < PAGE;
            after = page.last().map_or(after, |(topic, _)| topic.clone());
            rows.extend(page);
            if is_last {
                return Ok(Some((version, rows)));
            }
        }
    }

    pub fn policy_changes(&self) -> PolicyChanges {
        PolicyChanges::new(&self.shared.location.policies)
    }
}

fn put(txn: &mut Txn<'_>, topic: &str, written: &str) -> Result<PolicyPut> {
    let (is_known, now_us) = (txn.tables.policies.get(topic)?.is_some(), txn.now_us());
    if !is_known && txn.tables.policies.count()? >= MAX_POLICIES as u64 {
        return Ok(PolicyPut::TooMany);
    }
    let version = PolicyVersion(txn.tables.policies.put(topic, written, now_us)?);
    Ok(if is_known { PolicyPut::Replaced(version) } else { PolicyPut::Created(version) })
}
