//! Policies and pauses of topics. Policies are read in pages, so that no call of the writer takes long. A pause stops
//! the delivery of a topic's jobs. A resume ends the pause and gives the lanes that it held their turns again.

use ringback_core::job::Topic;
use ringback_core::store_types::{
    ConfigEntry, Limit, MAX_RESUMED_LANES, PolicyPut, PolicyRows, PolicyVersion, Shard, StoreError,
    TopicCapacity,
};
use ringback_core::topic_policy::{MAX_TOPICS_WITH_METRICS, Metrics};

use crate::error::Result;
use crate::tables::Pause;
use crate::txn::Txn;
use crate::{ANY_SHARD, EmbeddedStore, PolicyChanges, TRANSITION_BYTES};

/// How many policies one call reads, at most a MiB together.
const PAGE: usize = 24;

impl EmbeddedStore {
    /// Stores an entry if the present one is `replaced`, where `None` stands for no entry, and no limit is exceeded.
    /// Announces a change of policies.
    pub async fn put_entry(
        &self,
        entry: ConfigEntry<'_>,
        replaced: Option<&str>,
    ) -> Result<PolicyPut, StoreError> {
        let (name, written) = (entry.name.to_owned(), entry.written.to_owned());
        let (metrics, limit, replaced) = (entry.metrics, entry.limit, replaced.map(str::to_owned));
        let put = move |txn: &mut Txn<'_>| {
            let entry = ConfigEntry { name: &name, written: &written, metrics, limit };
            put(txn, entry, replaced.as_deref())
        };
        let put = self.call(ANY_SHARD, entry.name.len() + entry.written.len(), put).await?;
        self.shared.location.policies.send_replace(());
        Ok(put)
    }

    /// Removes a policy and announces a change. Returns the new version; `None` if the topic has no policy.
    pub async fn delete_entry(&self, name: &str) -> Result<Option<PolicyVersion>, StoreError> {
        let topic = name.to_owned();
        let delete = move |txn: &mut Txn<'_>| {
            let now_us = txn.now_us();
            let version = txn.tables.policies.remove(&topic, now_us)?;
            if version.is_some() {
                set_metrics(txn, &topic, Metrics::Together)?;
            }
            Ok(version)
        };
        let version = self.call(ANY_SHARD, TRANSITION_BYTES, delete).await?;
        self.shared.location.policies.send_replace(());
        Ok(version.map(PolicyVersion))
    }

    pub async fn entry(&self, name: &str) -> Result<Option<String>, StoreError> {
        let name = name.to_owned();
        self.call(ANY_SHARD, 0, move |txn| txn.tables.policies.get(&name)).await
    }

    /// Returns the version of the policies and, read in pages after it, all of them; `None` if the version is `known`.
    pub async fn policies(
        &self,
        known: Option<PolicyVersion>,
    ) -> Result<Option<(PolicyVersion, PolicyRows)>, StoreError> {
        let version = PolicyVersion(self.call(ANY_SHARD, 0, |txn| txn.tables.policies.version()).await?);
        if known == Some(version) {
            return Ok(None);
        }
        let (mut rows, mut after) = (PolicyRows::new(), String::new());
        loop {
            let from = after.clone();
            let page = self.call(ANY_SHARD, 0, move |txn| txn.tables.policies.after(&from, PAGE)).await?;
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

    /// Pauses a topic in a shard, and makes the topic known. If `capacity` asks for a check and the pause would exceed a
    /// limit, changes nothing and returns the limit.
    pub async fn pause(
        &self,
        shard: Shard,
        topic: &Topic,
        capacity: TopicCapacity,
    ) -> Result<Option<Limit>, StoreError> {
        let topic = topic.as_str().to_owned();
        let pause = move |txn: &mut Txn<'_>| {
            if let TopicCapacity::Needed(limits) = capacity
                && let Some(limit) = txn.tables.counts.refuse_pause(shard.0, &topic, limits)?
            {
                return Ok(Some(limit));
            }
            txn.tables.due.register(shard.0, &topic)?;
            txn.tables.counts.set_pause(shard.0, &topic, Pause::Paused)?;
            Ok(None)
        };
        self.call(shard, TRANSITION_BYTES, pause).await
    }

    /// Resumes a topic in a shard, in several calls for many lanes. Returns whether the shard knows it, paused or not.
    pub async fn resume(&self, shard: Shard, topic: &Topic) -> Result<bool, StoreError> {
        loop {
            let topic = topic.clone();
            let resume = move |txn: &mut Txn<'_>| resume(txn, topic.as_str());
            match self.call(shard, MAX_RESUMED_LANES * 64, resume).await? {
                Some(true) => {}
                is_more => return Ok(is_more.is_some()),
            }
        }
    }
}

fn put(txn: &mut Txn<'_>, entry: ConfigEntry<'_>, replaced: Option<&str>) -> Result<PolicyPut> {
    let ConfigEntry { name, written, metrics, limit } = entry;
    let (known, now_us) = (txn.tables.policies.get(name)?, txn.now_us());
    if known.as_deref() != replaced {
        return Ok(PolicyPut::Outdated);
    }
    let is_known = known.is_some();
    if !is_known && txn.tables.policies.count()? >= limit as u64 {
        return Ok(PolicyPut::TooMany);
    }
    if !set_metrics(txn, name, metrics)? {
        return Ok(PolicyPut::TooManyWithMetrics);
    }
    let version = PolicyVersion(txn.tables.policies.put(name, written, now_us)?);
    Ok(if is_known { PolicyPut::Replaced(version) } else { PolicyPut::Created(version) })
}

/// Records whether a topic has metrics of its own. Changes nothing and returns false if too many topics would.
fn set_metrics(txn: &mut Txn<'_>, topic: &str, metrics: Metrics) -> Result<bool> {
    let mut topics = txn.tables.policies.with_metrics()?;
    let has_changed = match metrics {
        Metrics::ByTopic => topics.insert(topic.to_owned()),
        Metrics::Together => topics.remove(topic),
    };
    if topics.len() > MAX_TOPICS_WITH_METRICS {
        return Ok(false);
    }
    if has_changed {
        txn.tables.policies.set_with_metrics(topics)?;
    }
    Ok(true)
}

/// Gives up to [`MAX_RESUMED_LANES`] lanes of a paused topic their turns, or keeps them for a paused destination, and
/// ends the pause after the last. Returns whether lanes may be left; `None` if the topic is not known.
fn resume(txn: &mut Txn<'_>, topic: &str) -> Result<Option<bool>> {
    let shard = txn.shard();
    if !txn.tables.due.is_known(shard, topic)? {
        return Ok(None);
    }
    if !txn.tables.counts.topics.load(shard, topic)?.is_paused() {
        return Ok(Some(false));
    }
    let lanes = txn.tables.ready.paused(shard, topic, MAX_RESUMED_LANES)?;
    for lane in &lanes {
        match txn.tables.destinations.holder(shard, lane)? {
            Some(turn) => txn.tables.ready.set_turn(shard, lane, Some(turn))?,
            None => txn.give_turn(lane)?,
        }
    }
    let is_more = lanes.len() == MAX_RESUMED_LANES;
    txn.tables.counts.set_pause(shard, topic, if is_more { Pause::Resuming } else { Pause::None })?;
    Ok(Some(is_more))
}
