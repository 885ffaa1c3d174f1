//! When keys were last used, to the hour. Each process notes in the store the first use of a key in an hour, so that a
//! key costs at most one write an hour and process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ringback_core::access::{AccessKey, KeyId};
use ringback_core::clock::Timestamp;
use ringback_store::Store;
use tokio::sync::Notify;
use tokio::time::sleep;

const HOUR_MS: u64 = 3_600_000;
/// How long uses are collected before they are written.
const COLLECT: Duration = Duration::from_secs(2);

/// The uses that are not in the store yet.
#[derive(Default)]
pub(crate) struct KeyUses {
    new: Mutex<HashMap<KeyId, (Arc<AccessKey>, Timestamp)>>,
    came: Notify,
}

impl KeyUses {
    pub(crate) fn note(&self, key: &Arc<AccessKey>, now: Timestamp) {
        let hour = Timestamp::from_millis(now.as_millis() / HOUR_MS * HOUR_MS);
        if key.last_used.is_none_or(|last| last < hour) {
            self.lock().entry(key.id.clone()).or_insert_with(|| (Arc::clone(key), hour));
            self.came.notify_one();
        }
    }

    /// Writes uses, for ever. What cannot be written is noted again by the next use.
    pub(crate) async fn keep(&self, store: &Store) {
        loop {
            self.came.notified().await;
            sleep(COLLECT).await;
            let uses = std::mem::take(&mut *self.lock());
            for (id, (key, hour)) in uses {
                if let Err(error) = store.note_key_use(&key, hour).await {
                    tracing::debug!(key = %id, %error, "the use of a key is not noted");
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<KeyId, (Arc<AccessKey>, Timestamp)>> {
        self.new.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
