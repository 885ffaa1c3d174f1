//! Schedules: reads, adds, changes and removes them, lists those that are due, and submits the jobs of those that fire.

use std::time::Duration;

use ringback_core::clock::Timestamp;
use ringback_core::job::{Locator, TenantScope, Topic};
use ringback_core::schedule::{MAX_SCHEDULES, ScheduleKey};
use ringback_core::state::State;
use ringback_core::store_types::{
    DueSchedule, DueSchedules, MAX_SCHEDULE_BYTES, ScheduleAdded, ScheduleChange, ScheduleChanged,
    ScheduleRow, Shard, StoreError,
};

use super::new_record::NewRecord;
use super::submit::submit;
use crate::error::Result;
use crate::tables::Tables;
use crate::txn::{KeepTombstones, Txn};
use crate::{ANY_SHARD, EmbeddedStore, TRANSITION_BYTES};

impl EmbeddedStore {
    pub async fn schedule(&self, key: &ScheduleKey) -> Result<Option<ScheduleRow>, StoreError> {
        let key = key.clone();
        self.call(ANY_SHARD, 0, move |txn| txn.tables.schedules.get(&key)).await
    }

    pub async fn schedules(
        &self,
        scope: &TenantScope,
        after: Option<(ScheduleKey, Topic)>,
        limit: usize,
    ) -> Result<(Vec<ScheduleRow>, Option<(ScheduleKey, Topic)>), StoreError> {
        let (scope, from) = (scope.clone(), after.map(|(key, _)| key));
        let snapshot = self.snapshot().await?;
        let read = move |tables: &Tables<_>| tables.schedules.after(&scope, from.as_ref(), limit);
        let rows = self.read(snapshot, read).await?;
        let next =
            rows.last().filter(|_| rows.len() == limit).map(|row| (row.key.clone(), row.topic.clone()));
        Ok((rows, next))
    }

    /// Adds a schedule, unless there is one with its key, or too many: [`MAX_SCHEDULES`] in all, or, if `most` is given,
    /// more than that or than a fair share of its tenant.
    pub async fn add_schedule(
        &self,
        shard: Shard,
        row: &ScheduleRow,
        most: Option<u64>,
    ) -> Result<ScheduleAdded, StoreError> {
        let row = row.clone();
        // Counted in a snapshot, so that the writer is free. Schedules that are added meanwhile are not counted.
        let (snapshot, tenant) = (self.snapshot().await?, row.key.tenant.clone());
        let limit = most.unwrap_or(0).min(MAX_SCHEDULES) as usize;
        let count = move |tables: &Tables<_>| tables.schedules.count(&TenantScope::One(tenant), limit);
        let (all, own) = self.read(snapshot, count).await?;
        // A tenant must leave as many free as it has.
        let share = MAX_SCHEDULES.saturating_sub(all.saturating_sub(own)) / 2;
        let is_too_many = all >= MAX_SCHEDULES || most.is_some_and(|most| own + 1 > most.min(share));
        self.call(shard, row.packed.len() + TRANSITION_BYTES, move |txn| add(txn, &row, is_too_many)).await
    }

    pub async fn remove_schedule(&self, shard: Shard, row: &ScheduleRow) -> Result<bool, StoreError> {
        let (key, version) = (row.key.clone(), row.version);
        let remove = move |txn: &mut Txn<'_>| {
            let is_current = has_version(txn, &key, Some(version))?;
            if is_current {
                txn.tables.schedules.remove(&key)?;
            }
            Ok(is_current)
        };
        self.call(shard, TRANSITION_BYTES, remove).await
    }

    /// Does nothing and returns false: no call leaves a part of a schedule behind.
    pub async fn forget_schedule(&self, _key: &ScheduleKey) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// Stores schedules without submitting jobs. Returns for each whether it was stored or has another version than
    /// expected.
    pub async fn change_schedules(
        &self,
        shard: Shard,
        changes: &[ScheduleChange],
    ) -> Result<Vec<ScheduleChanged>, StoreError> {
        let changes: Vec<_> = changes.iter().map(|change| (change.expected, change.row.clone())).collect();
        let bytes = changes.iter().map(|(_, row)| row.packed.len() + TRANSITION_BYTES).sum();
        let change = move |txn: &mut Txn<'_>| {
            changes.iter().map(|(expected, row)| change(txn, *expected, row)).collect::<Result<_>>()
        };
        self.call(shard, bytes, change).await
    }

    /// Submits the jobs of schedules and stores the schedules. Returns for each whether that was done, or the schedule
    /// has another version than expected, or a limit of topics or lanes refuses its jobs. Fails with `ArchiveBehind`
    /// while the archive outbox is full.
    pub async fn fire(
        &self,
        shard: Shard,
        changes: &[ScheduleChange],
    ) -> Result<Vec<ScheduleChanged>, StoreError> {
        let firings: Vec<_> = changes.iter().map(|change| Firing::new(shard, change)).collect();
        let (bytes, keep) = (firings.iter().map(Firing::bytes).sum(), self.keep_tombstones());
        let fire = move |txn: &mut Txn<'_>| {
            txn.check_archive()?;
            firings.iter().map(|firing| firing.fire(txn, keep)).collect()
        };
        self.call(shard, bytes, fire).await
    }

    /// Returns the first `limit` schedules of a shard whose time has come, the time, and how long until the next.
    pub async fn due_schedules(&self, shard: Shard, limit: usize) -> Result<DueSchedules, StoreError> {
        self.call(shard, TRANSITION_BYTES, move |txn| due(txn, limit)).await
    }
}

/// The change of a schedule that fires.
struct Firing {
    expected: Option<u64>,
    row: ScheduleRow,
    jobs: Vec<NewRecord>,
}

impl Firing {
    fn new(shard: Shard, change: &ScheduleChange) -> Self {
        let jobs = change.jobs.iter().map(|job| NewRecord::pack(shard.0, job).fired()).collect();
        Self { expected: change.expected, row: change.row.clone(), jobs }
    }

    fn bytes(&self) -> usize {
        self.row.packed.len() + self.jobs.iter().map(|job| job.body.len() + TRANSITION_BYTES).sum::<usize>()
    }

    /// Submits the jobs and stores the schedule, unless its version differs or a limit refuses the jobs. A job whose id
    /// is taken counts as submitted.
    fn fire(&self, txn: &mut Txn<'_>, keep: KeepTombstones) -> Result<ScheduleChanged> {
        if !has_version(txn, &self.row.key, self.expected)? {
            return Ok(ScheduleChanged::Outdated);
        }
        // All jobs of a schedule are in one lane.
        if let Some(job) = self.jobs.first()
            && let Some(limit) =
                txn.tables.counts.refuse(txn.shard(), &job.record.lane().name(), job.limits)?
        {
            return Ok(ScheduleChanged::Full(limit));
        }
        for job in &self.jobs {
            submit(txn, job, keep)?;
        }
        put(txn, &self.row)?;
        Ok(ScheduleChanged::Changed)
    }
}

fn has_version(txn: &Txn<'_>, key: &ScheduleKey, version: Option<u64>) -> Result<bool> {
    Ok(txn.tables.schedules.get(key)?.map(|row| row.version) == version)
}

fn change(txn: &mut Txn<'_>, expected: Option<u64>, row: &ScheduleRow) -> Result<ScheduleChanged> {
    if !has_version(txn, &row.key, expected)? {
        return Ok(ScheduleChanged::Outdated);
    }
    put(txn, row)?;
    Ok(ScheduleChanged::Changed)
}

/// Stores a schedule, whose version the caller has compared. Wakes the carrier if the schedule fires before all others.
fn put(txn: &mut Txn<'_>, row: &ScheduleRow) -> Result<()> {
    let shard = txn.shard();
    let first = txn.tables.schedules.first(shard)?;
    txn.tables.schedules.put(shard, row)?;
    let next = row.next.map(Timestamp::as_millis);
    if next.is_some_and(|next| first.is_none_or(|first| next < first)) {
        // A pass tells the carrier when the first one fires.
        txn.wake_at(txn.now());
    }
    Ok(())
}

fn add(txn: &mut Txn<'_>, row: &ScheduleRow, is_too_many: bool) -> Result<ScheduleAdded> {
    if let Some(known) = txn.tables.schedules.get(&row.key)? {
        let is_same = known.topic == row.topic;
        return Ok(if is_same { ScheduleAdded::Exists } else { ScheduleAdded::OtherTopic(known.topic) });
    }
    if is_too_many {
        return Ok(ScheduleAdded::TooMany);
    }
    put(txn, row)?;
    Ok(ScheduleAdded::Added)
}

fn due(txn: &mut Txn<'_>, limit: usize) -> Result<DueSchedules> {
    let (shard, now) = (txn.shard(), txn.now());
    let (mut due, mut left) = (Vec::new(), MAX_SCHEDULE_BYTES);
    for (at, name) in txn.tables.schedules.until(shard, now, limit)? {
        let row =
            ScheduleKey::from_stored(&name).and_then(|key| txn.tables.schedules.get(&key).ok().flatten());
        let Some(row) = row else {
            tracing::error!(
                shard,
                schedule = name,
                "a schedule that is not there, or cannot be read, does not fire"
            );
            txn.tables.schedules.forget_time(shard, at, &name)?;
            continue;
        };
        let is_overlapped =
            match row.former {
                Some(Locator(former)) => txn.tables.records.find(former)?.is_some_and(|job| {
                    matches!(job.state(), State::Delayed | State::Ready | State::Reserved)
                }),
                None => false,
            };
        left = left.saturating_sub(row.packed.len());
        due.push(DueSchedule { row, is_overlapped });
        if left == 0 {
            break;
        }
    }
    let wait = |at: u64| Duration::from_micros(at.saturating_mul(1000).saturating_sub(txn.now_us()));
    let next = txn.tables.schedules.first(shard)?.map(wait);
    Ok(DueSchedules { due, now: Timestamp::from_millis(now), next })
}
