//! Rows that a transaction has read or changed.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Rows by shard and name, as they stand or will stand once they are written.
pub(crate) struct Cache<V> {
    rows: HashMap<u16, HashMap<Box<str>, V>>,
    changed: BTreeMap<u16, BTreeSet<Box<str>>>,
}

impl<V: Copy + Default> Cache<V> {
    pub(crate) fn new() -> Self {
        Self { rows: HashMap::new(), changed: BTreeMap::new() }
    }

    pub(crate) fn get(&self, shard: u16, name: &str) -> Option<V> {
        self.rows.get(&shard)?.get(name).copied()
    }

    pub(crate) fn keep(&mut self, shard: u16, name: &str, value: V) {
        self.rows.entry(shard).or_default().insert(name.into(), value);
    }

    /// What is not written down is not kept.
    pub(crate) fn forget(&mut self, shard: u16, name: &str) {
        self.rows.entry(shard).or_default().remove(name);
    }

    /// What has changed since this was asked last.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = (u16, Box<str>)> + use<V> {
        let changed = std::mem::take(&mut self.changed).into_iter();
        changed.flat_map(|(shard, names)| names.into_iter().map(move |name| (shard, name)))
    }

    /// What was read before is changed.
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
