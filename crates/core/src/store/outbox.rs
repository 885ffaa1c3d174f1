//! The outbox: deaths that are still to be told, as the edges leave them by which a job dies. A
//! carrier tells them, by submitting a notice of each, and then takes them out. An entry is in the
//! shard of the job that died, written with the death, and has all that its notice needs.

use std::time::Duration;

use bytes::Bytes;

use super::{Backend, Epoch, Shard, Store, StoreError};
use crate::clock::Timestamp;
use crate::notice::Death;

/// The most deaths that one call reads, or takes out.
pub const MAX_DEATHS: usize = 100;
/// About so many bytes of entries are read in one call.
pub(super) const MOST_BYTES: usize = 256 * 1024;

/// An entry of the outbox, as the backend finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxPlace(pub(super) Bytes);

/// A death that is to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untold {
    /// Its entry.
    pub place: OutboxPlace,
    /// What happened; none where the entry cannot be read.
    pub death: Option<Death>,
}

/// Deaths that are to be told by now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outbox {
    /// The first of them.
    pub deaths: Vec<Untold>,
    /// The store's time.
    pub now: Timestamp,
}

/// What became of deaths that were read from the outbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Telling {
    /// These need not be told any more.
    pub told: Vec<OutboxPlace>,
    /// These are to be told after so long.
    pub later: Vec<(OutboxPlace, Duration)>,
}

/// What a tell came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// Another carrier holds the shard; nothing was done.
    Fenced,
    /// Done, and after how long the next death is to be told; none when the outbox is empty.
    Held(Option<Duration>),
}

impl Store {
    /// The first deaths of a shard that are to be told by now, at most `limit`, of [`MAX_DEATHS`].
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn outbox(&self, shard: Shard, limit: usize) -> Result<Outbox, StoreError> {
        let limit = limit.min(MAX_DEATHS);
        match &self.backend {
            Backend::Redis(store) => store.outbox(shard, limit).await,
            Backend::Embedded(store) => store.outbox(shard, limit).await,
        }
    }

    /// tell: what was told leaves the outbox, what could not be told stays there for later. At most
    /// [`MAX_DEATHS`] together.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating does no harm.
    pub async fn tell(&self, shard: Shard, epoch: &Epoch, telling: &Telling) -> Result<Told, StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.tell(shard, epoch, telling).await,
            Backend::Embedded(store) => store.tell(shard, epoch, telling).await,
        }
    }
}
