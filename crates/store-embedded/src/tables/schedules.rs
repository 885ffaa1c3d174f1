//! Schedules, which are jobs that recur: the row of each, by key, and an index of the times at which they fire next.

use ringback_core::clock::Timestamp;
use ringback_core::job::TenantScope;
use ringback_core::schedule::ScheduleKey;
use ringback_core::store_types::{ScheduleRow, StoreError};
use serde::{Deserialize, Serialize};

use super::definitions::{SCHEDULE_TIMES, SCHEDULES};
use super::rows::{Access, Rows, Writing, pack};
use crate::error::Result;

/// A schedule as it is stored, packed with postcard.
#[derive(Serialize, Deserialize)]
struct Stored {
    shard: u16,
    row: ScheduleRow,
}

impl Stored {
    /// Returns when the schedule fires next, in ms; `None` if it does not fire again.
    fn next(&self) -> Option<u64> {
        self.row.next.map(Timestamp::as_millis)
    }
}

pub(crate) struct Schedules<A: Access> {
    rows: Rows<A, &'static str, &'static [u8]>,
    times: Rows<A, (u16, u64, &'static str), ()>,
}

impl<A: Access> Schedules<A> {
    pub(crate) fn open(access: &A) -> Result<Self> {
        Ok(Self { rows: access.open(SCHEDULES)?, times: access.open(SCHEDULE_TIMES)? })
    }

    pub(crate) fn get(&self, key: &ScheduleKey) -> Result<Option<ScheduleRow>> {
        self.rows.read(key.to_string().as_str(), row)?.transpose()
    }

    /// Returns the first `limit` schedules of a scope after a key, if one is given. Logs and skips unreadable ones.
    pub(crate) fn after(
        &self,
        scope: &TenantScope,
        after: Option<&ScheduleKey>,
        limit: usize,
    ) -> Result<Vec<ScheduleRow>> {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let (low, high) = scope.bounds();
        let (mut rows, mut after) = (Vec::new(), after.map(ToString::to_string));
        loop {
            let low = after.as_deref().map_or(Included(low.as_str()), Excluded);
            let high = high.as_deref().map_or(Unbounded, Excluded);
            let asked = limit - rows.len();
            let read = |name: &str, raw: &[u8]| (name.to_owned(), readable(name, raw));
            let page = self.rows.list::<&str, _>((low, high), asked, read)?;
            let is_last = page.len() < asked;
            let last = page.last().map(|(name, _)| name.clone());
            rows.extend(page.into_iter().filter_map(|(_, row)| row));
            if is_last || rows.len() == limit {
                return Ok(rows);
            }
            after = last;
        }
    }

    /// Returns how many schedules there are in all, and how many of a scope. The second count stops at `most`.
    pub(crate) fn count(&self, scope: &TenantScope, most: usize) -> Result<(u64, u64)> {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let (low, high) = scope.bounds();
        let bounds = (Included(low.as_str()), high.as_deref().map_or(Unbounded, Excluded));
        let own = self.rows.list::<&str, _>(bounds, most, |_, _| ())?.len();
        Ok((self.rows.len()?, own as u64))
    }

    /// Returns when the first schedule of a shard fires, in ms; `None` if none fires again.
    pub(crate) fn first(&self, shard: u16) -> Result<Option<u64>> {
        Ok(self.until(shard, u64::MAX, 1)?.first().map(|(at, _)| *at))
    }

    /// Returns the times and names of the first `limit` schedules of a shard that fire at or before a time, in ms.
    pub(crate) fn until(&self, shard: u16, time: u64, limit: usize) -> Result<Vec<(u64, String)>> {
        // No name is as great as this one.
        let all = (shard, 0, "")..=(shard, time, "\u{10ffff}");
        self.times.list(all, limit, |(_, at, name), ()| (at, name.to_owned()))
    }

    pub(crate) fn len_of_times(&self) -> Result<u64> {
        self.times.len()
    }

    /// Calls `visit` with shard, name and next time of each readable schedule, and whether the index has that time.
    /// The last is true for a schedule that does not fire again.
    pub(crate) fn each(
        &self,
        mut visit: impl FnMut(u16, &str, Option<u64>, bool) -> Result<()>,
    ) -> Result<()> {
        self.rows.each(|name, raw| {
            let Ok(stored) = postcard::from_bytes::<Stored>(raw) else { return Ok(()) };
            let has_time = match stored.next() {
                Some(next) => self.times.has((stored.shard, next, name))?,
                None => true,
            };
            visit(stored.shard, name, stored.next(), has_time)
        })
    }
}

impl Schedules<Writing<'_>> {
    /// Stores a schedule of a shard in place of any other with its key.
    pub(crate) fn put(&mut self, shard: u16, row: &ScheduleRow) -> Result<()> {
        self.remove(&row.key)?;
        let (name, next) = (row.key.to_string(), row.next.map(Timestamp::as_millis));
        if let Some(next) = next {
            self.times.insert((shard, next, name.as_str()), ())?;
        }
        self.rows.insert(name.as_str(), pack(&Stored { shard, row: row.clone() }).as_slice())
    }

    /// Removes a schedule, if there is one with this key.
    pub(crate) fn remove(&mut self, key: &ScheduleKey) -> Result<()> {
        let name = key.to_string();
        let stored = self.rows.read(name.as_str(), |raw| postcard::from_bytes::<Stored>(raw).ok())?.flatten();
        if let Some((shard, next)) = stored.and_then(|stored| Some((stored.shard, stored.next()?))) {
            self.times.remove((shard, next, name.as_str()))?;
        }
        self.rows.remove(name.as_str()).map(drop)
    }

    /// Sets the times of a shard's schedules that are after this time, in ms, to it; a carrier then plans them again.
    pub(crate) fn look_at_all(&mut self, shard: u16, time: u64) -> Result<()> {
        let later = (shard, time.saturating_add(1), "")..=(shard, u64::MAX, "\u{10ffff}");
        for (at, name) in self.times.list(later, usize::MAX, |(_, at, name), ()| (at, name.to_owned()))? {
            let read = |raw: &[u8]| postcard::from_bytes::<Stored>(raw).ok();
            let Some(mut stored) = self.rows.read(name.as_str(), read)?.flatten() else { continue };
            stored.row.next = Some(Timestamp::from_millis(time));
            self.times.remove((shard, at, name.as_str()))?;
            self.times.insert((shard, time, name.as_str()), ())?;
            self.rows.insert(name.as_str(), pack(&stored).as_slice())?;
        }
        Ok(())
    }

    /// Removes a time from the index, for a time that belongs to no schedule.
    pub(crate) fn forget_time(&mut self, shard: u16, at: u64, name: &str) -> Result<()> {
        self.times.remove((shard, at, name)).map(drop)
    }

    /// Adds the time of a schedule to the index, and returns the time; `None` if it was not missing.
    pub(crate) fn relink(&mut self, name: &str) -> Result<Option<u64>> {
        let stored = self.rows.read(name, |raw| postcard::from_bytes::<Stored>(raw).ok())?.flatten();
        let time = stored.and_then(|stored| Some((stored.shard, stored.next()?)));
        let Some((shard, next)) = time else { return Ok(None) };
        if self.times.has((shard, next, name))? {
            return Ok(None);
        }
        self.times.insert((shard, next, name), ())?;
        Ok(Some(next))
    }
}

const UNREADABLE: StoreError = StoreError::Unreadable("a schedule");

fn readable(name: &str, raw: &[u8]) -> Option<ScheduleRow> {
    let row = row(raw).ok();
    if row.is_none() {
        tracing::error!(schedule = name, "a schedule cannot be read and is left out");
    }
    row
}

fn row(raw: &[u8]) -> Result<ScheduleRow> {
    let stored: Stored = postcard::from_bytes(raw).map_err(|_| UNREADABLE)?;
    Ok(stored.row)
}
