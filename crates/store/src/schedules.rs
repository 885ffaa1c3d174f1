//! Schedules: finding, listing and changing them, and making those fire whose time has come.
//!
//! On Redis a schedule lies in the shard of its jobs, and an index of the installation leads to it. The index is
//! written first and removed last. A put and a delete of the same schedule at the same time both look again at the end,
//! so that no schedule is left that the index does not know.

use std::collections::BTreeMap;

use futures_util::future::try_join_all;
use ringback_core::contract::{
    DueSchedules, ScheduleAdded, ScheduleChange, ScheduleChanged, ScheduleListed, ScheduleRow, Shard,
    StoreError,
};
use ringback_core::job::{TenantScope, Topic};
use ringback_core::schedule::ScheduleKey;

use crate::backend::{Backend, Store, dispatch};

impl Store {
    /// A schedule.
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn schedule(&self, key: &ScheduleKey) -> Result<Option<ScheduleRow>, StoreError> {
        match &self.backend {
            Backend::Redis(store) => match store.topic_of_schedule(key).await? {
                Some(topic) => {
                    let shard = self.shard_of(&key.in_topic(&topic));
                    Ok(store.schedules(shard, &[(key.clone(), topic)]).await?.pop().flatten())
                }
                None => Ok(None),
            },
            Backend::Embedded(store) => store.schedule(key).await,
        }
    }

    /// The first schedules of a scope behind one, in the order of their keys, at most `limit`. Fewer, and even none,
    /// may be followed by others; the second value is where to go on, `None` at the end.
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn schedules(
        &self,
        scope: &TenantScope,
        after: Option<(ScheduleKey, Topic)>,
        limit: usize,
    ) -> Result<(Vec<ScheduleRow>, Option<(ScheduleKey, Topic)>), StoreError> {
        let store = match &self.backend {
            Backend::Redis(store) => store,
            Backend::Embedded(store) => {
                let rows = store.schedules(scope, after.as_ref().map(|(key, _)| key), limit).await?;
                let last = rows.last().map(|row| (row.key.clone(), row.topic.clone()));
                let next = last.filter(|_| rows.len() == limit);
                return Ok((rows, next));
            }
        };
        let listed = store.listed_schedules(scope, after.as_ref(), limit).await?;
        let next = listed.last().filter(|_| listed.len() == limit).cloned();
        let mut by_shard: BTreeMap<Shard, Vec<(ScheduleKey, Topic)>> = BTreeMap::new();
        for (key, topic) in listed {
            by_shard.entry(self.shard_of(&key.in_topic(&topic))).or_default().push((key, topic));
        }
        let reads = by_shard.iter().map(|(shard, keys)| store.schedules(*shard, keys));
        let mut rows: Vec<_> = try_join_all(reads).await?.into_iter().flatten().flatten().collect();
        rows.sort_unstable_by_key(|row| row.key.to_string());
        Ok((rows, next))
    }

    /// Adds a schedule, unless there is one with its key. `most` is how many its tenant may have, if that is limited.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating does no harm.
    pub async fn add_schedule(
        &self,
        row: &ScheduleRow,
        most: Option<u64>,
    ) -> Result<ScheduleAdded, StoreError> {
        let store = match &self.backend {
            Backend::Redis(store) => store,
            Backend::Embedded(store) => {
                return store.add_schedule(self.shard_of(&row.shard_key()), row, most).await;
            }
        };
        loop {
            match store.list_schedule(&row.key, &row.topic, most).await? {
                ScheduleListed::Listed => break,
                ScheduleListed::TooMany => return Ok(ScheduleAdded::TooMany),
                ScheduleListed::OtherTopic(topic) => {
                    if !self.unlist(&row.key, topic.clone()).await? {
                        return Ok(ScheduleAdded::OtherTopic(topic));
                    }
                }
            }
        }
        let change = ScheduleChange { expected: None, row: row.clone(), jobs: Vec::new() };
        let changed = self.change_schedules(self.shard_of(&row.shard_key()), &[change]).await?;
        // A delete at the same time may have removed it from the index, and another put may have listed another topic.
        if let ScheduleListed::OtherTopic(topic) = store.list_schedule(&row.key, &row.topic, None).await? {
            self.remove_unlisted(row).await?;
            return Ok(ScheduleAdded::OtherTopic(topic));
        }
        Ok(match changed.as_slice() {
            [ScheduleChanged::Changed] => ScheduleAdded::Added,
            _ => ScheduleAdded::Exists,
        })
    }

    /// Removes a schedule that lost against one for another topic, whatever it has done since.
    async fn remove_unlisted(&self, row: &ScheduleRow) -> Result<(), StoreError> {
        let Backend::Redis(store) = &self.backend else { return Ok(()) };
        let (shard, key) = (self.shard_of(&row.shard_key()), (row.key.clone(), row.topic.clone()));
        while let Some(left) = store.schedules(shard, std::slice::from_ref(&key)).await?.pop().flatten() {
            store.remove_schedule(shard, &left).await?;
        }
        Ok(())
    }

    /// Removes the place of a schedule that is not there, which a call that ended early has left. Returns whether there
    /// was one.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating does no harm.
    pub async fn forget_schedule(&self, key: &ScheduleKey) -> Result<bool, StoreError> {
        let Backend::Redis(store) = &self.backend else { return Ok(false) };
        let Some(topic) = store.topic_of_schedule(key).await? else { return Ok(false) };
        self.unlist(key, topic).await
    }

    /// Removes a schedule from the index, unless it is there. Returns whether it is not.
    async fn unlist(&self, key: &ScheduleKey, topic: Topic) -> Result<bool, StoreError> {
        let Backend::Redis(store) = &self.backend else { return Ok(false) };
        let (shard, pair) = (self.shard_of(&key.in_topic(&topic)), [(key.clone(), topic)]);
        if store.schedules(shard, &pair).await?.pop().flatten().is_some() {
            return Ok(false);
        }
        let [(key, topic)] = &pair;
        store.unlist_schedule(key, topic).await?;
        // A put at the same time may have added it, and have seen it in the index.
        let is_there = store.schedules(shard, &pair).await?.pop().flatten().is_some();
        if is_there {
            store.list_schedule(key, topic, None).await?;
        }
        Ok(!is_there)
    }

    /// Removes a schedule, if it still has this version.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating does no harm.
    pub async fn remove_schedule(&self, row: &ScheduleRow) -> Result<bool, StoreError> {
        let store = match &self.backend {
            Backend::Redis(store) => store,
            Backend::Embedded(store) => {
                return store.remove_schedule(self.shard_of(&row.shard_key()), row).await;
            }
        };
        let shard = self.shard_of(&row.shard_key());
        if !store.remove_schedule(shard, row).await? {
            return Ok(false);
        }
        self.unlist(&row.key, row.topic.clone()).await?;
        Ok(true)
    }

    /// Changes schedules of a shard that have the expected versions, and submits nothing. Returns a result for each.
    ///
    /// # Errors
    /// Any [`StoreError`]. Repeating shows that the version is another one.
    pub async fn change_schedules(
        &self,
        shard: Shard,
        changes: &[ScheduleChange],
    ) -> Result<Vec<ScheduleChanged>, StoreError> {
        dispatch!(self.change_schedules(shard, changes))
    }

    /// The first schedules of a shard whose time has come.
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn due_schedules(&self, shard: Shard, limit: usize) -> Result<DueSchedules, StoreError> {
        dispatch!(self.due_schedules(shard, limit))
    }

    /// Changes schedules of a shard that have the expected versions, and submits the jobs of each, at least one, in the
    /// same step. Returns a result for each.
    ///
    /// # Errors
    /// Any [`StoreError`]. Repeating shows that the version is another one.
    pub async fn fire(
        &self,
        shard: Shard,
        changes: &[ScheduleChange],
    ) -> Result<Vec<ScheduleChanged>, StoreError> {
        dispatch!(self.fire(shard, changes))
    }
}
