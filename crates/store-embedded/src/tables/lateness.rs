//! How late jobs were delivered: one histogram per shard and minute, kept for seven minutes.

use std::collections::BTreeMap;

use ringback_core::store_types::Lateness;

use super::rows::{Access, Rows, Writing};
use crate::error::Result;

/// How many minutes are kept.
const KEPT: u64 = 7;
/// How many minutes before the present minute are reported.
const REPORTED: u64 = 5;

pub(crate) struct Minutes<A: Access>(pub(crate) Rows<A, (u16, u64), &'static [u8]>);

impl<A: Access> Minutes<A> {
    /// Returns the sum of the present minute and the [`REPORTED`] before it. `now` is in ms.
    pub(crate) fn recent(&self, shard: u16, now: u64) -> Result<Lateness> {
        let minute = now / 60_000;
        let mut sum = Lateness::default();
        for minute in minute.saturating_sub(REPORTED)..=minute {
            sum.merge(&self.get(shard, minute)?);
        }
        Ok(sum)
    }

    /// Returns how many outcomes were recorded in each of the [`REPORTED`] minutes before the present one. `now` is in
    /// ms.
    pub(crate) fn counts(&self, shard: u16, now: u64) -> Result<BTreeMap<u64, u64>> {
        let minute = now / 60_000;
        let minutes = minute.saturating_sub(REPORTED)..minute;
        minutes.map(|minute| Ok((minute, self.get(shard, minute)?.count()))).collect()
    }

    fn get(&self, shard: u16, minute: u64) -> Result<Lateness> {
        let mut lateness = Lateness::default();
        self.0.read((shard, minute), |raw| {
            for (name, n) in String::from_utf8_lossy(raw).split(' ').filter_map(|field| field.split_once(':'))
            {
                lateness.add_field(name, n.parse().unwrap_or(0));
            }
        })?;
        Ok(lateness)
    }
}

impl Minutes<Writing<'_>> {
    /// Adds to the histogram of the present minute. The first time in a minute, removes old ones. `now` is in ms.
    pub(crate) fn add(&mut self, shard: u16, now: u64, lateness: &Lateness) -> Result<()> {
        let minute = now / 60_000;
        let mut sum = self.get(shard, minute)?;
        if sum.count() == 0 {
            let old = (shard, 0)..=(shard, minute.saturating_sub(KEPT));
            for key in self.0.list(old, usize::MAX, |key, _| key)? {
                self.0.remove(key)?;
            }
        }
        sum.merge(lateness);
        self.0.insert((shard, minute), sum.encode().as_bytes())
    }
}
