//! The policies of topics: rows of a table, which is read in pages, so that no call of the
//! writer takes long.

use ringback_core::contract::{PolicyPut, PolicyRows, PolicyVersion, Shard, StoreError};
use ringback_core::job::Topic;
use ringback_core::policy::MAX_POLICIES;
use tokio::sync::watch;

use super::EmbeddedStore;
use super::edges;

/// So many policies are read with one call: a MiB at most.
const PAGE: usize = 64;
/// They are of no shard; the calls need one.
const ANY: Shard = Shard(0);

impl EmbeddedStore {
    pub async fn put_policy(&self, topic: &Topic, written: &str) -> Result<PolicyPut, StoreError> {
        let (topic, written) = (topic.to_string(), written.to_owned());
        let bytes = topic.len() + written.len();
        let put =
            self.call(ANY, bytes, move |txn| edges::put_policy(txn, &topic, &written, MAX_POLICIES)).await?;
        self.place.policies.send_replace(());
        Ok(put)
    }

    pub async fn delete_policy(&self, topic: &Topic) -> Result<Option<PolicyVersion>, StoreError> {
        let topic = topic.to_string();
        let version = self.call(ANY, 256, move |txn| edges::delete_policy(txn, &topic)).await?;
        self.place.policies.send_replace(());
        Ok(version.map(PolicyVersion))
    }

    pub async fn policy(&self, topic: &Topic) -> Result<Option<String>, StoreError> {
        let topic = topic.to_string();
        self.call(ANY, 0, move |txn| txn.tables.policies.get(&topic)).await
    }

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
        PolicyChanges { changed: self.place.policies.subscribe(), is_new: true }
    }
}

/// The stream of changes, told once they are safe.
pub struct PolicyChanges {
    changed: watch::Receiver<()>,
    is_new: bool,
}

impl PolicyChanges {
    pub async fn next(&mut self) {
        if std::mem::take(&mut self.is_new) {
            return;
        }
        if self.changed.changed().await.is_err() {
            // The place has gone, and the store with it.
            std::future::pending::<()>().await;
        }
    }
}
