//! Streams inside one process: wake-ups, events of jobs, and changes to policies. An item is published after the change
//! that it reports was written. While nobody watches a shard, it has no events.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use ringback_core::store_types::{Event, Shard, StreamItem, Wake};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender};
use tokio::sync::watch;

/// How many wake-ups a listener may be behind. A slower one gets [`Wake::Subscribed`], which makes it check all shards.
pub(crate) const WAKE_BACKLOG: usize = 1024;
/// The most events of a batch.
const BATCH: usize = 500;
/// How many batches of events a listener may be behind. A slower one misses some.
const EVENT_BACKLOG: usize = 128;

/// A listener's end of a broadcast.
struct Listener<T> {
    sender: Sender<T>,
    /// `None` until the first call.
    receiver: Option<Receiver<T>>,
}

/// Why a listener may have missed items: before its first call, or because it fell behind.
enum Interrupted {
    First,
    FellBehind,
}

impl<T: Clone> Listener<T> {
    async fn next(&mut self) -> Result<T, Interrupted> {
        let Some(receiver) = &mut self.receiver else {
            self.receiver = Some(self.sender.subscribe());
            return Err(Interrupted::First);
        };
        // `sender` keeps the channel open, so an error means that the listener fell behind.
        receiver.recv().await.map_err(|_: RecvError| {
            *receiver = self.sender.subscribe();
            Interrupted::FellBehind
        })
    }
}

/// The stream of wake-ups.
pub struct Wakes(Listener<Wake>);

impl Wakes {
    pub(crate) const fn new(sender: Sender<Wake>) -> Self {
        Self(Listener { sender, receiver: None })
    }

    pub async fn next(&mut self) -> Wake {
        self.0.next().await.unwrap_or(Wake::Subscribed)
    }
}

/// Where events are published, and which shards are watched.
pub(crate) struct EventBus {
    sender: Sender<Arc<[Event]>>,
    watched: Mutex<HashMap<u16, Watched>>,
}

/// The time during which a shard is watched, in ms.
#[derive(Clone, Copy, Default)]
struct Watched {
    since: u64,
    until: u64,
}

impl Default for EventBus {
    fn default() -> Self {
        Self { sender: Sender::new(EVENT_BACKLOG), watched: Mutex::default() }
    }
}

impl EventBus {
    /// Returns when the watch on a shard ends, in ms; 0 if the shard was never watched.
    pub(crate) fn watched_until(&self, shard: Shard) -> u64 {
        self.watched
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&shard.0)
            .map_or(0, |watched| watched.until)
    }

    /// Extends the watch on a shard to `until`, in ms. Returns the time since which it is watched without a gap.
    pub(crate) fn watch(&self, shard: u16, now: u64, until: u64) -> u64 {
        let mut all = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let watched = all.entry(shard).or_default();
        if watched.until <= now {
            watched.since = now;
        }
        watched.until = watched.until.max(until);
        watched.since
    }

    pub(crate) fn publish(&self, mut events: Vec<Event>) {
        while !events.is_empty() {
            let rest = events.split_off(events.len().min(BATCH));
            // An error means that nobody listens.
            let _ = self.sender.send(events.into());
            events = rest;
        }
    }

    pub(crate) fn listen(&self) -> Events {
        Events(Listener { sender: self.sender.clone(), receiver: None })
    }
}

/// The stream of events. It begins with [`StreamItem::Gap`]; a listener that fell behind gets [`StreamItem::Missed`].
pub struct Events(Listener<Arc<[Event]>>);

impl Events {
    pub async fn next(&mut self) -> StreamItem {
        match self.0.next().await {
            Ok(events) => StreamItem::Events(events.to_vec()),
            Err(Interrupted::First) => StreamItem::Gap,
            Err(Interrupted::FellBehind) => StreamItem::Missed,
        }
    }
}

/// The stream of changes to policies. The first call returns at once.
pub struct PolicyChanges(watch::Receiver<()>);

impl PolicyChanges {
    pub(crate) fn new(changes: &watch::Sender<()>) -> Self {
        let mut changes = changes.subscribe();
        changes.mark_changed();
        Self(changes)
    }

    pub async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            // The store is gone, so no more changes will come.
            std::future::pending::<()>().await;
        }
    }
}
