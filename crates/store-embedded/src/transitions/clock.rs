//! How far the store's time was ahead of the machine's clock, and the word that the clock is right.

use ringback_core::store_types::{AcceptClock, ClockGap, Shard, StoreError};

use crate::{ANY_SHARD, EmbeddedStore};

impl EmbeddedStore {
    /// How far its time was ahead, while somebody has to say that the clock is right.
    pub fn clock_gap(&self) -> Option<ClockGap> {
        self.shared.location.clock_word.gap(&*self.shared.location.clock)
    }

    /// Takes the word that the clock is right.
    /// The same; none if that makes no difference.
    pub fn clock_ahead(&self) -> ClockGap {
        self.clock_gap().unwrap_or_default()
    }

    /// Whether its time is that of this machine's clock.
    pub async fn agrees_on_time(&self, _shard: Shard) -> Result<bool, StoreError> {
        Ok(self.clock_gap().is_none())
    }

    pub async fn accept_clock(&self) -> Result<AcceptClock, StoreError> {
        let Some(gap) = self.clock_gap() else { return Ok(AcceptClock::Right) };
        self.shared.location.clock_word.give();
        // The writer takes it before its next call.
        self.call(ANY_SHARD, 0, |_| Ok(())).await?;
        Ok(AcceptClock::Accepted(gap))
    }
}
