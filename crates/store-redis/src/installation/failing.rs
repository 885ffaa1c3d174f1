//! Failing destinations: reads their texts, and replaces texts that no other process has changed meanwhile.

use ringback_core::clock::Timestamp;
use ringback_core::store_types::{FailingChange, SharedFailing, StoreError};

use crate::keys::KeySpace;
use crate::redis_store::RedisStore;
use crate::script;

impl RedisStore {
    pub async fn failing(&self) -> Result<SharedFailing, StoreError> {
        let (now, texts): (u64, Vec<(String, String)>) =
            self.call(&script::FAILING, KeySpace::Installation).run().await?;
        Ok(SharedFailing::new(Timestamp::from_millis(now), texts))
    }

    /// Makes all changes, or none and returns false if one of the texts differs from what its change expects.
    pub async fn change_failing(&self, changes: &[FailingChange]) -> Result<bool, StoreError> {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let args = changes
            .iter()
            .flat_map(|change| [change.name.clone(), text(&change.before), text(&change.after)]);
        let args: Vec<_> = args.collect();
        self.call(&script::CHANGE_FAILING, KeySpace::Installation).arg(args).run().await
    }
}
