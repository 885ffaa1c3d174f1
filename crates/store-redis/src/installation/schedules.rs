//! Schedules by their keys: reads, lists, adds and removes them. A schedule is stored in the shard of its jobs, and an
//! index of the installation leads to it. The index is written first and removed last. A put and a delete of the same
//! schedule at the same time both check again at the end, so that no schedule is left without an index entry.

use std::collections::BTreeMap;

use futures_util::future::try_join_all;
use ringback_core::job::{Tenant, TenantScope, Topic};
use ringback_core::schedule::{MAX_SCHEDULES, ScheduleKey};
use ringback_core::store_types::{
    ScheduleAdded, ScheduleChange, ScheduleChanged, ScheduleRow, Shard, StoreError,
};

use crate::keys::KeySpace;
use crate::redis_store::RedisStore;
use crate::script;

const UNREADABLE: StoreError = StoreError::Unreadable("the index of schedules");

/// The result of adding a schedule to the index of the installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ScheduleListed {
    /// The schedule is in the index, now or before.
    Listed,
    /// The index has the key for another topic.
    OtherTopic(Topic),
    /// The limit of schedules, in all or of the tenant, is reached.
    TooMany,
}

type ScheduleId = (ScheduleKey, Topic);

impl RedisStore {
    pub async fn schedule(&self, key: &ScheduleKey) -> Result<Option<ScheduleRow>, StoreError> {
        match self.topic_of_schedule(key).await? {
            Some(topic) => self.found(&(key.clone(), topic)).await,
            None => Ok(None),
        }
    }

    /// Returns the first schedules of a scope after one, and where to go on; `None` if the page has fewer than `limit`.
    pub async fn schedules(
        &self,
        scope: &TenantScope,
        after: Option<ScheduleId>,
        limit: usize,
    ) -> Result<(Vec<ScheduleRow>, Option<ScheduleId>), StoreError> {
        let listed = self.listed_schedules(scope, after.as_ref(), limit).await?;
        let next = listed.last().filter(|_| listed.len() == limit).cloned();
        let mut by_shard: BTreeMap<Shard, Vec<ScheduleId>> = BTreeMap::new();
        for (key, topic) in listed {
            by_shard.entry(self.shard_of(&key, &topic)).or_default().push((key, topic));
        }
        let reads = by_shard.iter().map(|(shard, keys)| self.schedules_of(*shard, keys));
        let mut rows: Vec<_> = try_join_all(reads).await?.into_iter().flatten().flatten().collect();
        rows.sort_unstable_by_key(|row| row.key.to_string());
        Ok((rows, next))
    }

    /// Adds a schedule, unless there is one with its key, for this or another topic, or too many. `most` is how many its
    /// tenant may have.
    pub async fn add_schedule(
        &self,
        shard: Shard,
        row: &ScheduleRow,
        most: Option<u64>,
    ) -> Result<ScheduleAdded, StoreError> {
        loop {
            match self.list_schedule(&row.key, &row.topic, most).await? {
                ScheduleListed::Listed => break,
                ScheduleListed::TooMany => return Ok(ScheduleAdded::TooMany),
                ScheduleListed::OtherTopic(topic) => {
                    if !self.unlist(&(row.key.clone(), topic.clone())).await? {
                        return Ok(ScheduleAdded::OtherTopic(topic));
                    }
                }
            }
        }
        let change = ScheduleChange { expected: None, row: row.clone(), jobs: Vec::new() };
        let changed = self.change_schedules(shard, &[change]).await?;
        // A delete at the same time may have removed it from the index, and another put may have listed another topic.
        if let ScheduleListed::OtherTopic(topic) = self.list_schedule(&row.key, &row.topic, None).await? {
            // The schedule has lost against one for another topic, whatever it has done since.
            while let Some(left) = self.found(&(row.key.clone(), row.topic.clone())).await? {
                self.remove_row(shard, &left).await?;
            }
            return Ok(ScheduleAdded::OtherTopic(topic));
        }
        Ok(match changed.as_slice() {
            [ScheduleChanged::Changed] => ScheduleAdded::Added,
            _ => ScheduleAdded::Exists,
        })
    }

    /// Removes a schedule, and then its index entry, if it still has this version. Returns whether it had.
    pub async fn remove_schedule(&self, shard: Shard, row: &ScheduleRow) -> Result<bool, StoreError> {
        if !self.remove_row(shard, row).await? {
            return Ok(false);
        }
        self.unlist(&(row.key.clone(), row.topic.clone())).await?;
        Ok(true)
    }

    /// Removes an index entry without a schedule, which a call that ended early has left. Returns whether there was one.
    pub async fn forget_schedule(&self, key: &ScheduleKey) -> Result<bool, StoreError> {
        match self.topic_of_schedule(key).await? {
            Some(topic) => self.unlist(&(key.clone(), topic)).await,
            None => Ok(false),
        }
    }

    /// Removes the index entry of a schedule, unless the schedule exists. Returns whether the schedule does not exist.
    async fn unlist(&self, id: &ScheduleId) -> Result<bool, StoreError> {
        if self.found(id).await?.is_some() {
            return Ok(false);
        }
        self.unlist_schedule(&id.0, &id.1).await?;
        // A put at the same time may have added it, and have seen it in the index.
        let is_there = self.found(id).await?.is_some();
        if is_there {
            self.list_schedule(&id.0, &id.1, None).await?;
        }
        Ok(!is_there)
    }

    async fn found(&self, id: &ScheduleId) -> Result<Option<ScheduleRow>, StoreError> {
        let rows = self.schedules_of(self.shard_of(&id.0, &id.1), std::slice::from_ref(id)).await?;
        Ok(rows.into_iter().flatten().next())
    }

    fn shard_of(&self, key: &ScheduleKey, topic: &Topic) -> Shard {
        Shard::of(&key.in_topic(topic), self.options.shards)
    }

    /// Adds a schedule to the index, unless its key is there or the limit is reached. `most` is how many its tenant may
    /// have, `None` to check only the limit of all.
    pub(crate) async fn list_schedule(
        &self,
        key: &ScheduleKey,
        topic: &Topic,
        most: Option<u64>,
    ) -> Result<ScheduleListed, StoreError> {
        let prefix = most.and(key.tenant.as_ref()).map(Tenant::prefix).unwrap_or_default();
        let args = (key.to_string(), topic.as_str(), MAX_SCHEDULES, prefix, most.unwrap_or(MAX_SCHEDULES));
        let answer: String =
            self.call(&script::LIST_SCHEDULE, KeySpace::Installation).confirmed().arg(args).run().await?;
        match answer.as_str() {
            "" => Ok(ScheduleListed::Listed),
            "!" => Ok(ScheduleListed::TooMany),
            other => Topic::from_stored(other).map(ScheduleListed::OtherTopic).ok_or(UNREADABLE),
        }
    }

    /// Removes a schedule from the index.
    pub(crate) async fn unlist_schedule(&self, key: &ScheduleKey, topic: &Topic) -> Result<(), StoreError> {
        let args = (key.to_string(), topic.as_str());
        self.call(&script::UNLIST_SCHEDULE, KeySpace::Installation)
            .confirmed()
            .arg(args)
            .run::<u64>()
            .await
            .map(drop)
    }

    pub(crate) async fn topic_of_schedule(&self, key: &ScheduleKey) -> Result<Option<Topic>, StoreError> {
        let name = format!("{key} ");
        let members: Vec<String> =
            self.call(&script::LIST_SCHEDULES, KeySpace::Installation).arg((&name, "", 1, 0)).run().await?;
        match members.first().and_then(|member| member.strip_prefix(&name)) {
            Some(topic) => Topic::from_stored(topic).map(Some).ok_or(UNREADABLE),
            None => Ok(None),
        }
    }

    /// Returns the first `limit` schedules of a scope in the index, after one if it is given, in the order of the keys.
    pub(crate) async fn listed_schedules(
        &self,
        scope: &TenantScope,
        after: Option<&(ScheduleKey, Topic)>,
        limit: usize,
    ) -> Result<Vec<(ScheduleKey, Topic)>, StoreError> {
        let (prefix, has_no_tenant) = match scope {
            TenantScope::All => (String::new(), 0),
            TenantScope::One(None) => (String::new(), 1),
            TenantScope::One(Some(tenant)) => (tenant.prefix(), 0),
        };
        let after = after.map(|(key, topic)| format!("{key} {}", topic.as_str())).unwrap_or_default();
        let args = (prefix, after, limit, has_no_tenant);
        let members: Vec<String> =
            self.call(&script::LIST_SCHEDULES, KeySpace::Installation).arg(args).run().await?;
        let read = |member: &String| {
            let (key, topic) = member.split_once(' ')?;
            Some((ScheduleKey::from_stored(key)?, Topic::from_stored(topic)?))
        };
        members.iter().map(|member| read(member).ok_or(UNREADABLE)).collect()
    }
}
