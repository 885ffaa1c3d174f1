//! Rows of counts that the writer's transaction has read or changed.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Rows by shard and name, with the changes that are not written yet.
#[derive(Default)]
pub(crate) struct Cache<V> {
    rows: HashMap<u16, HashMap<Box<str>, V>>,
    changed: BTreeMap<u16, BTreeSet<Box<str>>>,
}

impl<V: Copy + Default> Cache<V> {
    pub(crate) fn get(&self, shard: u16, name: &str) -> Option<V> {
        self.rows.get(&shard)?.get(name).copied()
    }

    pub(crate) fn insert(&mut self, shard: u16, name: &str, value: V) {
        self.rows.entry(shard).or_default().insert(name.into(), value);
    }

    pub(crate) fn remove(&mut self, shard: u16, name: &str) {
        self.rows.entry(shard).or_default().remove(name);
    }

    /// The keys of the rows that changed since the last call.
    pub(crate) fn take_changed(&mut self) -> impl Iterator<Item = (u16, Box<str>)> + use<V> {
        let changed = std::mem::take(&mut self.changed).into_iter();
        changed.flat_map(|(shard, names)| names.into_iter().map(move |name| (shard, name)))
    }

    /// Changes a row that was read before, and returns it.
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
