//! A cache in front of a table of counts: keeps the rows that the writer has read or changed in memory, and writes the
//! changed ones once per group.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ringback_core::store_types::StoreError;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::super::rows::{Access, Rows, Writing, pack};
use crate::error::Result;

/// Rows by shard and name.
pub(crate) type ByName<V> = BTreeMap<(u16, String), V>;
/// The stored rows by shard and name, packed.
pub(crate) type Stored<A> = Rows<A, (u16, &'static str), &'static [u8]>;

/// A row of counts. A blank row is not stored.
pub(crate) trait CountRow: Copy + Default + Serialize + DeserializeOwned {
    /// Whether the row need not be stored.
    fn is_blank(&self) -> bool;
}

pub(crate) struct Cache<A: Access, V> {
    pub(crate) stored: Stored<A>,
    rows: HashMap<u16, HashMap<Box<str>, V>>,
    /// The names of the rows that are not written yet.
    changed: BTreeMap<u16, BTreeSet<Box<str>>>,
}

impl<A: Access, V: CountRow> Cache<A, V> {
    pub(crate) fn new(stored: Stored<A>) -> Self {
        Self { stored, rows: HashMap::new(), changed: BTreeMap::new() }
    }

    pub(crate) fn stored(&self, shard: u16, name: &str) -> Result<V> {
        self.stored.read((shard, name), unpack)?.unwrap_or_else(|| Ok(V::default()))
    }

    pub(crate) fn all(&self) -> Result<ByName<V>> {
        let mut all = ByName::new();
        self.stored.each(|(shard, name), raw| {
            all.insert((shard, name.to_owned()), unpack(raw)?);
            Ok(())
        })?;
        Ok(all)
    }

    /// Returns the row in memory, or the stored one, which is then kept in memory; a blank row if there is neither.
    pub(crate) fn load(&mut self, shard: u16, name: &str) -> Result<V> {
        if let Some(row) = self.rows.get(&shard).and_then(|rows| rows.get(name)) {
            return Ok(*row);
        }
        let row = self.stored(shard, name)?;
        self.rows.entry(shard).or_default().insert(name.into(), row);
        Ok(row)
    }

    pub(crate) fn loaded(&self, shard: u16, name: &str) -> V {
        self.rows.get(&shard).and_then(|rows| rows.get(name)).copied().unwrap_or_default()
    }

    /// Changes a row in memory and returns it. The row must be loaded before; otherwise the change begins with a blank
    /// row.
    pub(crate) fn change(&mut self, shard: u16, name: &str, change: impl FnOnce(&mut V)) -> V {
        let rows = self.rows.entry(shard).or_default();
        let row = match rows.get_mut(name) {
            Some(row) => row,
            None => rows.entry(name.into()).or_default(),
        };
        change(row);
        let now = *row;
        let changed = self.changed.entry(shard).or_default();
        if !changed.contains(name) {
            changed.insert(name.into());
        }
        now
    }
}

impl<V: CountRow> Cache<Writing<'_>, V> {
    pub(crate) fn save(&mut self) -> Result<()> {
        for (shard, names) in std::mem::take(&mut self.changed) {
            for name in names {
                let row = self.loaded(shard, &name);
                if row.is_blank() {
                    self.stored.remove((shard, &*name))?;
                    self.rows.entry(shard).or_default().remove(&name);
                } else {
                    self.stored.insert((shard, &*name), pack(&row).as_slice())?;
                }
            }
        }
        Ok(())
    }
}

pub(crate) fn unpack<V: CountRow>(raw: &[u8]) -> Result<V> {
    Ok(postcard::from_bytes(raw).map_err(|_| StoreError::Unreadable("a row of counts"))?)
}
