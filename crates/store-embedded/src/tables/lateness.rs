//! Lateness: a histogram a minute, kept for seven.

use redb::{ReadableTable as _, TableDefinition, WriteTransaction};
use ringback_core::contract::{Lateness, StoreError};

use super::rows::{Journal, Name, Rows};

const MINUTES: TableDefinition<'static, (u16, u64), &[u8]> = TableDefinition::new("lateness");

/// How many minutes are kept.
const KEPT: u64 = 7;
/// How many before the present one count.
const COUNTED: u64 = 5;

pub(crate) struct Minutes<'t>(pub(crate) Rows<'t, (u16, u64), &'static [u8]>);

impl<'t> Minutes<'t> {
    pub(crate) fn open(txn: &'t WriteTransaction, journal: &'t Journal) -> Result<Self, StoreError> {
        Ok(Self(Rows::open(txn, journal, Name::Minutes, MINUTES)?))
    }

    /// Adds to the present minute, and forgets those that are too old. `now` is in ms.
    pub(crate) fn add(&mut self, shard: u16, now: u64, lateness: &Lateness) -> Result<(), StoreError> {
        let minute = now / 60_000;
        let mut sum = self.get(shard, minute)?;
        if sum.count() == 0 {
            self.forget(shard, minute.saturating_sub(KEPT))?;
        }
        sum.merge(lateness);
        self.0.insert((shard, minute), sum.encode().as_bytes())?;
        Ok(())
    }

    /// The last minutes together.
    pub(crate) fn recent(&self, shard: u16, now: u64) -> Result<Lateness, StoreError> {
        let minute = now / 60_000;
        let mut sum = Lateness::default();
        for minute in minute.saturating_sub(COUNTED)..=minute {
            sum.merge(&self.get(shard, minute)?);
        }
        Ok(sum)
    }

    fn get(&self, shard: u16, minute: u64) -> Result<Lateness, StoreError> {
        let mut lateness = Lateness::default();
        if let Some(raw) = self.0.get((shard, minute))? {
            for word in String::from_utf8_lossy(raw.value()).split(' ') {
                if let Some((name, n)) = word.split_once(':') {
                    lateness.add_field(name, n.parse().unwrap_or(0));
                }
            }
        }
        Ok(lateness)
    }

    fn forget(&mut self, shard: u16, until: u64) -> Result<(), StoreError> {
        let mut old = Vec::new();
        for row in self.0.range((shard, 0)..=(shard, until))? {
            old.push(row?.0.value());
        }
        for key in old {
            self.0.remove(key)?;
        }
        Ok(())
    }
}
