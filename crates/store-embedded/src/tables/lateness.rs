//! How late jobs were delivered: one histogram per shard and minute, kept for seven minutes.

use redb::ReadableTable as _;
use ringback_core::contract::Lateness;

use super::rows::{Access, Writing};
use crate::error::Result;

/// How many minutes are kept.
const KEPT: u64 = 7;
/// How many minutes before the present one are reported.
const REPORTED: u64 = 5;

pub(crate) struct Minutes<A: Access>(pub(crate) A::Table<(u16, u64), &'static [u8]>);

impl<A: Access> Minutes<A> {
    /// The sum of the last minutes. `now` is in ms.
    pub(crate) fn recent(&self, shard: u16, now: u64) -> Result<Lateness> {
        let minute = now / 60_000;
        let mut sum = Lateness::default();
        for minute in minute.saturating_sub(REPORTED)..=minute {
            sum.merge(&self.get(shard, minute)?);
        }
        Ok(sum)
    }

    fn get(&self, shard: u16, minute: u64) -> Result<Lateness> {
        let mut lateness = Lateness::default();
        if let Some(raw) = self.0.get((shard, minute))? {
            for field in String::from_utf8_lossy(raw.value()).split(' ') {
                if let Some((name, n)) = field.split_once(':') {
                    lateness.add_field(name, n.parse().unwrap_or(0));
                }
            }
        }
        Ok(lateness)
    }
}

impl Minutes<Writing<'_>> {
    /// Adds to the present minute and removes old ones. `now` is in ms.
    pub(crate) fn add(&mut self, shard: u16, now: u64, lateness: &Lateness) -> Result<()> {
        let minute = now / 60_000;
        let mut sum = self.get(shard, minute)?;
        if sum.count() == 0 {
            self.remove_until(shard, minute.saturating_sub(KEPT))?;
        }
        sum.merge(lateness);
        self.0.insert((shard, minute), sum.encode().as_bytes())
    }

    fn remove_until(&mut self, shard: u16, last: u64) -> Result<()> {
        let rows = self.0.range((shard, 0)..=(shard, last))?;
        let old = rows.map(|row| Ok(row?.0.value())).collect::<Result<Vec<_>>>()?;
        for key in old {
            self.0.remove(key)?;
        }
        Ok(())
    }
}
