//! Reports how far the store's time is ahead of the machine's clock, and takes an operator's word that the clock is
//! right.

use ringback_core::store_types::{AcceptClock, ClockGap, Shard, StoreError};

use crate::{ANY_SHARD, EmbeddedStore};

impl EmbeddedStore {
    /// Returns how far the store's time is ahead, and with how many jobs; `None` unless an operator has to decide.
    pub fn clock_gap(&self) -> Option<ClockGap> {
        self.shared.location.clock_word.gap(&*self.shared.location.clock)
    }

    /// Returns the [`Self::clock_gap`], or an empty one if there is none.
    pub fn clock_ahead(&self) -> ClockGap {
        self.clock_gap().unwrap_or_default()
    }

    /// Whether there is no [`Self::clock_gap`], so that the store's time can be trusted.
    pub async fn agrees_on_time(&self, _shard: Shard) -> Result<bool, StoreError> {
        Ok(self.clock_gap().is_none())
    }

    pub async fn accept_clock(&self) -> Result<AcceptClock, StoreError> {
        let Some(gap) = self.clock_gap() else { return Ok(AcceptClock::Right) };
        self.shared.location.clock_word.give();
        // The writer acts on the word before its next call.
        self.call(ANY_SHARD, 0, |_| Ok(())).await?;
        Ok(AcceptClock::Accepted(gap))
    }
}
