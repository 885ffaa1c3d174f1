//! Schedules: finding, listing and changing them, and making those fire whose time has come.

use ringback_core::job::{TenantScope, Topic};
use ringback_core::schedule::ScheduleKey;
use ringback_core::store_types::{
    DueSchedules, ScheduleAdded, ScheduleChange, ScheduleChanged, ScheduleRow, Shard, StoreError,
};

use crate::backend::backend;
use crate::store::Store;

impl Store {
    /// A schedule; `None` if there is none with this key.
    pub async fn schedule(&self, key: &ScheduleKey) -> Result<Option<ScheduleRow>, StoreError> {
        backend!(self.schedule(key).await)
    }

    /// The first schedules of a scope after one, in the order of their keys, at most `limit`. Fewer, and even none, may
    /// be followed by others; the second value is where to go on, `None` at the end.
    pub async fn schedules(
        &self,
        scope: &TenantScope,
        after: Option<(ScheduleKey, Topic)>,
        limit: usize,
    ) -> Result<(Vec<ScheduleRow>, Option<(ScheduleKey, Topic)>), StoreError> {
        backend!(self.schedules(scope, after, limit).await)
    }

    /// Adds a schedule, unless there is one with its key. `most` is how many its tenant may have, if that is limited.
    pub async fn add_schedule(
        &self,
        row: &ScheduleRow,
        most: Option<u64>,
    ) -> Result<ScheduleAdded, StoreError> {
        backend!(self.add_schedule(self.shard_of(&row.shard_key()), row, most).await)
    }

    /// Removes what a call that ended early has left of a schedule: its key without the schedule itself. Returns
    /// whether there was such a key.
    pub async fn forget_schedule(&self, key: &ScheduleKey) -> Result<bool, StoreError> {
        backend!(self.forget_schedule(key).await)
    }

    /// Removes a schedule, if it still has this version. Returns whether it did.
    pub async fn remove_schedule(&self, row: &ScheduleRow) -> Result<bool, StoreError> {
        backend!(self.remove_schedule(self.shard_of(&row.shard_key()), row).await)
    }

    /// Changes schedules of a shard that have the expected versions, and submits nothing. Returns a result for each.
    /// Repeating shows that the version is another one.
    pub async fn change_schedules(
        &self,
        shard: Shard,
        changes: &[ScheduleChange],
    ) -> Result<Vec<ScheduleChanged>, StoreError> {
        backend!(self.change_schedules(shard, changes).await)
    }

    /// The first schedules of a shard whose time has come, at most `limit`.
    pub async fn due_schedules(&self, shard: Shard, limit: usize) -> Result<DueSchedules, StoreError> {
        backend!(self.due_schedules(shard, limit).await)
    }

    /// Changes schedules of a shard that have the expected versions, and submits the jobs of each, at least one, in the
    /// same step. Returns a result for each. Repeating shows that the version is another one.
    pub async fn fire(
        &self,
        shard: Shard,
        changes: &[ScheduleChange],
    ) -> Result<Vec<ScheduleChanged>, StoreError> {
        backend!(self.fire(shard, changes).await)
    }
}
