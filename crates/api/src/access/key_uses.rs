//! Records when keys were last used, to the hour. Each process writes the first use of a key in an hour to the store,
//! so that a key costs about one write an hour and process.

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

    /// Writes new uses to the store, 2 s after the first of them came. Never returns. A use that cannot be written is
    /// dropped; the next use of the key in that hour is written instead.
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
