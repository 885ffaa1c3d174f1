//! Streams from the store: events, wake-ups and policy changes. A stream subscribes again by itself and
//! never ends.

use std::time::Duration;

use rand::rngs::StdRng;
use ringback_core::clock::Timestamp;
use ringback_core::store_types::{Shard, StoreError, StreamItem, Wake};
use ringback_store_embedded as embedded;
use ringback_store_redis as redis;

use crate::backend::{Backend, backend};
use crate::store::Store;

/// A stream from either backend.
pub struct Stream<Redis, Embedded>(Source<Redis, Embedded>);

enum Source<Redis, Embedded> {
    Redis(Box<Redis>),
    Embedded(Embedded),
}

pub type Events = Stream<redis::Events, embedded::Events>;
/// A stream of wake-ups.
pub type Wakes = Stream<redis::Wakes, embedded::Wakes>;
/// A stream of announcements that policies have changed. Announcements may be lost.
pub type PolicyChanges = Stream<redis::PolicyChanges, embedded::PolicyChanges>;

macro_rules! next {
    ($stream:ident) => {
        match &mut $stream.0 {
            Source::Redis(stream) => stream.next().await,
            Source::Embedded(stream) => stream.next().await,
        }
    };
}

impl Events {
    /// The next item; the first is a [`StreamItem::Gap`]. Cancel safe. Call it again soon: items that are not fetched
    /// wait in memory, or are lost.
    pub async fn next(&mut self) -> StreamItem {
        next!(self)
    }
}

impl Wakes {
    /// The next wake-up. Cancel safe.
    pub async fn next(&mut self) -> Wake {
        next!(self)
    }
}

impl PolicyChanges {
    /// Waits until policies may have changed: at once after the start and after each lost connection.
    /// Cancel safe.
    pub async fn next(&mut self) {
        next!(self);
    }
}

macro_rules! open {
    ($store:ident.$call:ident($rng:ident)) => {
        Stream(match &$store.backend {
            Backend::Redis(store) => Source::Redis(Box::new(store.$call($rng))),
            Backend::Embedded(store) => Source::Embedded(store.$call()),
        })
    };
}

impl Store {
    /// Emits the events of a shard for `lasts` from now, to all event streams. Returns the time since when
    /// they are emitted, by the store's clock. While it stays the same, no event in between was left out.
    pub async fn watch(&self, shard: Shard, lasts: Duration) -> Result<Timestamp, StoreError> {
        backend!(self.watch(shard, lasts).await)
    }

    /// A new stream of the events of all watched shards. `rng` spreads its attempts to subscribe again.
    pub fn events(&self, rng: StdRng) -> Events {
        open!(self.events(rng))
    }

    /// A new stream of wake-ups. `rng` spreads its attempts to subscribe again.
    pub fn wakes(&self, rng: StdRng) -> Wakes {
        open!(self.wakes(rng))
    }

    /// A new stream of policy changes. `rng` spreads its attempts to subscribe again.
    pub fn policy_changes(&self, rng: StdRng) -> PolicyChanges {
        open!(self.policy_changes(rng))
    }
}
