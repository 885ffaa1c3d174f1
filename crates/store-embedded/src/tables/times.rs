//! Jobs of a shard ordered by a time: reserved jobs, dead jobs and tombstones each have such a
//! table. Times are in ms.

use redb::ReadableTable as _;

use super::list::ByTime;
use super::rows::{Access, Rows, Writing};
use crate::error::Result;

pub(crate) struct Times<A: Access>(pub(crate) Rows<A, ByTime, ()>);

impl<A: Access> Times<A> {
    pub(crate) fn has(&self, shard: u16, at: u64, number: u64) -> Result<bool> {
        self.0.has((shard, at, number))
    }

    pub(crate) fn len(&self) -> Result<u64> {
        self.0.len()
    }

    /// The earliest time.
    pub(crate) fn first(&self, shard: u16) -> Result<Option<u64>> {
        self.range(shard, (0, 0), u64::MAX)?.next().map(|row| Ok(row?.0)).transpose()
    }

    /// The first entries at or before a time: time and number.
    pub(crate) fn until(&self, shard: u16, time: u64, limit: usize) -> Result<Vec<(u64, u64)>> {
        self.range(shard, (0, 0), time.saturating_add(1))?.take(limit).collect()
    }

    /// The entries from `from` (time and number) to before the time `before`, in order.
    pub(crate) fn range(
        &self,
        shard: u16,
        from: (u64, u64),
        before: u64,
    ) -> Result<impl Iterator<Item = Result<(u64, u64)>>> {
        let first = (shard, from.0, from.1);
        let rows = self.0.range(first..(shard, before, 0).max(first))?;
        Ok(rows.map(|row| {
            let (_, at, number) = row?.0.value();
            Ok((at, number))
        }))
    }
}

impl Times<Writing<'_>> {
    pub(crate) fn add(&mut self, shard: u16, at: u64, number: u64) -> Result<()> {
        self.0.insert((shard, at, number), ())
    }

    pub(crate) fn remove(&mut self, shard: u16, at: u64, number: u64) -> Result<()> {
        self.0.remove((shard, at, number)).map(drop)
    }
}
