//! The archive outbox of each shard: attaching an archive, taking the first entries and removing them, and its status.

use std::sync::PoisonError;
use std::time::Duration;

use ringback_core::store_types::{
    ArchiveSettings, ArchiveStatus, MAX_ARCHIVE_ENTRIES, OutboxPart, Shard, StoreError, TakeEntries,
};

use crate::backend::backend;
use crate::store::Store;

impl Store {
    /// Records for the readiness check whether a submit found the shard's archive outbox full. Returns `answer` as it
    /// is.
    pub(crate) fn track_archive_backlog<T>(
        &self,
        shard: Shard,
        answer: Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut behind = self.behind.lock().unwrap_or_else(PoisonError::into_inner);
        match &answer {
            Ok(_) if behind.is_empty() => {}
            Ok(_) => drop(behind.remove(&shard)),
            Err(StoreError::ArchiveBehind) => drop(behind.insert(shard)),
            Err(_) => {}
        }
        answer
    }

    /// Sets which ended jobs each shard puts into its archive outbox from now on: with `None` none, and those that wait
    /// there stay. Works shard by shard: after an error, some shards may have the new settings.
    pub async fn attach_archive(&self, settings: Option<ArchiveSettings>) -> Result<(), StoreError> {
        for shard in self.shards() {
            backend!(self.attach_archive(shard, settings).await)?;
        }
        Ok(())
    }

    /// The sum of the archive outboxes of all shards, read one after the other.
    pub async fn archive_status(&self) -> Result<ArchiveStatus, StoreError> {
        let mut all = ArchiveStatus::default();
        for shard in self.shards() {
            all.add(&self.archive_status_of(shard).await?);
        }
        Ok(all)
    }

    /// The archive outbox of a shard.
    pub async fn archive_status_of(&self, shard: Shard) -> Result<ArchiveStatus, StoreError> {
        backend!(self.archive_status(shard).await)
    }

    /// Takes the first entries of a shard's archive outbox: at most `limit` and [`MAX_ARCHIVE_ENTRIES`], of about
    /// [`MAX_ARCHIVE_BYTES`](ringback_core::store_types::MAX_ARCHIVE_BYTES). Before `lasts` has passed, other archivers
    /// get [`TakeEntries::Busy`]. Repeating returns the same entries.
    pub async fn take_ended(
        &self,
        shard: Shard,
        archiver: &str,
        lasts: Duration,
        limit: usize,
    ) -> Result<TakeEntries, StoreError> {
        backend!(self.take_ended(shard, archiver, lasts, limit.min(MAX_ARCHIVE_ENTRIES)).await)
    }

    /// Removes archived entries, if they are still the first ones. Returns how many are left in the shard's outbox.
    pub async fn remove_ended(
        &self,
        shard: Shard,
        archiver: &str,
        part: &OutboxPart,
    ) -> Result<u64, StoreError> {
        backend!(self.remove_ended(shard, archiver, part).await)
    }

    /// Drops the entries of all shards that wait for an archive, and returns how many there were.
    /// Repeating drops the rest.
    pub async fn drop_ended(&self) -> Result<u64, StoreError> {
        let mut dropped = 0;
        for shard in self.shards() {
            let mut left = self.archive_status_of(shard).await?.pending;
            while left > 0 {
                let n = left.min(MAX_ARCHIVE_ENTRIES as u64);
                left = backend!(self.drop_ended(shard, n).await)?;
                dropped += n;
            }
        }
        Ok(dropped)
    }
}
