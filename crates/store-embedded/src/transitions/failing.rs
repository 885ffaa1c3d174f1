//! Failing destinations: reads their texts, and replaces texts that no other process has changed meanwhile.

use ringback_core::clock::Timestamp;
use ringback_core::store_types::{FailingChange, SharedFailing, StoreError};

use crate::error::Result;
use crate::txn::Txn;
use crate::{ANY_SHARD, EmbeddedStore};

impl EmbeddedStore {
    pub async fn failing(&self) -> Result<SharedFailing, StoreError> {
        let (snapshot, now) = self.dated_snapshot().await?;
        let texts = self.read(snapshot, |tables| tables.failing.all()).await?;
        Ok(SharedFailing::new(Timestamp::from_millis(now), texts))
    }

    /// Makes all changes, or none and returns false if one of the texts differs from what its change expects.
    pub async fn change_failing(&self, changes: &[FailingChange]) -> Result<bool, StoreError> {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let bytes = changes.iter().map(|change| change.name.len() + length(&change.after) + 64).sum();
        let changes = changes.to_vec();
        self.call(ANY_SHARD, bytes, move |txn| change(txn, &changes)).await
    }
}

fn change(txn: &mut Txn<'_>, changes: &[FailingChange]) -> Result<bool> {
    let failing = &mut txn.tables.failing;
    for FailingChange { name, before, .. } in changes {
        if failing.get(name)? != *before {
            return Ok(false);
        }
    }
    for FailingChange { name, after, .. } in changes {
        failing.set(name, after.as_deref())?;
    }
    Ok(true)
}
