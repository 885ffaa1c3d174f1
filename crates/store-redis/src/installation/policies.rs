//! The shared configuration: policies of topics, keys, quotas and credentials.
//!
//! It is a hash of the installation. Each change then raises the version of all entries, so entries that are read after
//! the version are of that version or a later one.

use std::sync::Arc;

use rand::rngs::StdRng;
use ringback_core::store_types::{ConfigEntry, PolicyPut, PolicyRows, PolicyVersion, StoreError};
use ringback_core::topic_policy::{MAX_TOPICS_WITH_METRICS, Metrics};

use crate::channel::{Channel, Heard};
use crate::keys::KeySpace;
use crate::redis_store::RedisStore;
use crate::script;

/// How many entries one command reads, at most a MiB together.
const PAGE: usize = 24;

impl RedisStore {
    /// Stores an entry if the present one is `replaced`, where `None` stands for no entry, and no limit is exceeded.
    /// Announces the change.
    pub async fn put_entry(
        &self,
        entry: ConfigEntry<'_>,
        replaced: Option<&str>,
    ) -> Result<PolicyPut, StoreError> {
        let has_metrics = entry.metrics == Metrics::ByTopic;
        let replaced = replaced.unwrap_or_default();
        let limits = (entry.limit, has_metrics, MAX_TOPICS_WITH_METRICS);
        let args = (entry.name, entry.written, replaced, limits);
        let parts: Vec<u64> =
            self.call(&script::PUT_POLICY, KeySpace::Installation).confirmed().arg(args).run().await?;
        match parts.as_slice() {
            [] => Ok(PolicyPut::TooMany),
            [0] => Ok(PolicyPut::Outdated),
            [_] => Ok(PolicyPut::TooManyWithMetrics),
            [0, version] => Ok(PolicyPut::Created(PolicyVersion(*version))),
            [_, version] => Ok(PolicyPut::Replaced(PolicyVersion(*version))),
            _ => Err(StoreError::Unreadable(script::PUT_POLICY.name())),
        }
    }

    pub async fn delete_entry(&self, name: &str) -> Result<Option<PolicyVersion>, StoreError> {
        let version =
            self.call(&script::DELETE_POLICY, KeySpace::Installation).confirmed().arg(name).run().await?;
        Ok((version > 0).then_some(PolicyVersion(version)))
    }

    pub async fn entry(&self, name: &str) -> Result<Option<String>, StoreError> {
        let get = self.command("HGET", KeySpace::Installation, "a policy");
        get.arg((self.keys.policies(), name)).run().await
    }

    pub async fn policies(
        &self,
        known: Option<PolicyVersion>,
    ) -> Result<Option<(PolicyVersion, PolicyRows)>, StoreError> {
        let get = self.command("GET", KeySpace::Installation, "the version of the policies");
        let version: Option<u64> = get.arg(self.keys.policies_version()).run().await?;
        let version = PolicyVersion(version.unwrap_or_default());
        if known == Some(version) {
            return Ok(None);
        }
        let get = self.command("HKEYS", KeySpace::Installation, "the policies' topics");
        let topics: Vec<String> = get.arg(self.keys.policies()).run().await?;
        let mut rows = PolicyRows::with_capacity(topics.len());
        for page in topics.chunks(PAGE) {
            let get = self.command("HMGET", KeySpace::Installation, "the policies");
            let values: Vec<Option<String>> = get.arg((self.keys.policies(), page)).run().await?;
            // A policy that was deleted meanwhile has no value.
            let found =
                page.iter().zip(values).filter_map(|(topic, written)| Some((topic.clone(), written?)));
            rows.extend(found);
        }
        Ok(Some((version, rows)))
    }

    pub fn policy_changes(self: &Arc<Self>, rng: StdRng) -> PolicyChanges {
        PolicyChanges(Channel::new(Arc::clone(self), self.keys.channel("policies"), rng))
    }
}

/// The stream of changes of the configuration. It has its own channel, because an API does not need the many wake-ups.
pub struct PolicyChanges(Channel);

impl PolicyChanges {
    pub async fn next(&mut self) {
        while matches!(self.0.next().await, Heard::Lost) {}
    }
}
