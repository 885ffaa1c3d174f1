//! The stream of events inside one process. Events are published in batches, once what they report
//! is safe; while nobody watches a shard, none are made.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use ringback_core::contract::{Event, Shard, StreamItem};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender};

/// The most events of a batch.
const BATCH: usize = 500;
/// How many batches a stream may be behind; one that is further behind misses some.
const BACKLOG: usize = 128;

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
        Self { sender: Sender::new(BACKLOG), watched: Mutex::default() }
    }
}

impl EventBus {
    /// When the watch on a shard ends, in ms.
    pub(crate) fn watched_until(&self, shard: Shard) -> u64 {
        let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.get(&shard.0).map_or(0, |watched| watched.until)
    }

    /// Watches a shard until `until`, and returns since when it is watched without a gap.
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
        Events { sender: self.sender.clone(), receiver: None }
    }
}

/// A listener's end of the stream.
pub struct Events {
    sender: Sender<Arc<[Event]>>,
    /// `None` until the first call.
    receiver: Option<Receiver<Arc<[Event]>>>,
}

impl Events {
    pub async fn next(&mut self) -> StreamItem {
        let Some(receiver) = &mut self.receiver else {
            self.receiver = Some(self.sender.subscribe());
            return StreamItem::Gap;
        };
        match receiver.recv().await {
            Ok(events) => StreamItem::Events(events.to_vec()),
            // `sender` keeps the channel open, so the stream fell behind.
            Err(RecvError::Lagged(_) | RecvError::Closed) => {
                *receiver = self.sender.subscribe();
                StreamItem::Missed
            }
        }
    }
}
