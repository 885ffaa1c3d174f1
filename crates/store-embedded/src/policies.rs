//! The policies of topics: rows of a table, which is read in pages, so that no call of the
//! writer takes long.

use tokio::sync::watch;

use super::EmbeddedStore;
use super::edges;
use crate::job::Topic;
use crate::policy::MAX_POLICIES;
use crate::store::policies::{PolicyPut, PolicyVersion, Rows};
use crate::store::{Shard, StoreError};

/// So many policies are read with one call: a MiB at most.
const PAGE: usize = 64;
/// They are of no shard; the calls need one.
const ANY: Shard = Shard(0);

impl EmbeddedStore {
    pub(crate) async fn put_policy(&self, topic: &Topic, written: &str) -> Result<PolicyPut, StoreError> {
        let (topic, written) = (topic.to_string(), written.to_owned());
        let bytes = topic.len() + written.len();
        let put =
            self.call(ANY, bytes, move |txn| edges::put_policy(txn, &topic, &written, MAX_POLICIES)).await?;
        self.place.policies.send_replace(());
        Ok(put)
    }

    pub(crate) async fn delete_policy(&self, topic: &Topic) -> Result<Option<PolicyVersion>, StoreError> {
        let topic = topic.to_string();
        let version = self.call(ANY, 256, move |txn| edges::delete_policy(txn, &topic)).await?;
        self.place.policies.send_replace(());
        Ok(version.map(PolicyVersion))
    }

    pub(crate) async fn policy(&self, topic: &Topic) -> Result<Option<String>, StoreError> {
        let topic = topic.to_string();
        self.call(ANY, 0, move |txn| txn.tables.policies.get(&topic)).await
    }

    pub(crate) async fn policies(
        &self,
        known: Option<PolicyVersion>,
    ) -> Result<Option<(PolicyVersion, Rows)>, StoreError> {
        let version = PolicyVersion(self.call(ANY, 0, |txn| txn.tables.policies.version()).await?);
        if known == Some(version) {
            return Ok(None);
        }
        let (mut rows, mut after) = (Rows::new(), String::new());
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

    pub(crate) fn policy_changes(&self) -> PolicyChanges {
        PolicyChanges { changed: self.place.policies.subscribe(), is_new: true }
    }
}

/// The stream of changes, told once they are safe.
pub(crate) struct PolicyChanges {
    changed: watch::Receiver<()>,
    is_new: bool,
}

impl PolicyChanges {
    pub(crate) async fn next(&mut self) {
        if std::mem::take(&mut self.is_new) {
            return;
        }
        if self.changed.changed().await.is_err() {
            // The place has gone, and the store with it.
            std::future::pending::<()>().await;
        }
    }
}
