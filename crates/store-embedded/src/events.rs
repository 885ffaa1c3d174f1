//! Events inside one process: told once what they tell of is safe, in batches. While nobody
//! watches none is made.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ringback_core::clock::{Timestamp, millis_up};
use ringback_core::contract::{
    AttemptEnded, AttemptOutcome, Event, EventKind, Shard, StoreError, StreamItem,
};
use ringback_core::job::JobKey;
use ringback_core::outcome::LastAttempt;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender};

use super::EmbeddedStore;
use super::place::lock;
use super::tables::{Last, Record};
use super::txn::Txn;

/// The most events of a batch.
const BATCH: usize = 500;
/// How many batches a stream may be behind; beyond, it misses some.
const BACKLOG: usize = 128;

/// Where events are told, and since when and until when each shard is watched.
pub(crate) struct Tower {
    sender: Sender<Arc<[Event]>>,
    watched: Mutex<HashMap<u16, Watched>>,
}

/// In ms.
#[derive(Clone, Copy, Default)]
struct Watched {
    since: u64,
    until: u64,
}

impl Default for Tower {
    fn default() -> Self {
        Self { sender: Sender::new(BACKLOG), watched: Mutex::default() }
    }
}

impl Tower {
    /// Until when a shard is watched, in ms.
    pub(crate) fn until(&self, shard: Shard) -> u64 {
        lock(&self.watched).get(&shard.0).map_or(0, |watched| watched.until)
    }

    /// Watches a shard until a time; says since when it is.
    fn extend(&self, shard: u16, now: u64, till: u64) -> u64 {
        let mut all = lock(&self.watched);
        let watched = all.entry(shard).or_default();
        if watched.until <= now {
            watched.since = now;
        }
        watched.until = watched.until.max(till);
        watched.since
    }

    pub(crate) fn tell(&self, mut events: Vec<Event>) {
        while !events.is_empty() {
            let rest = events.split_off(events.len().min(BATCH));
            // Nobody listens: nobody is to be told.
            let _ = self.sender.send(events.into());
            events = rest;
        }
    }
}

impl EmbeddedStore {
    pub async fn watch(&self, shard: Shard, lasts: Duration) -> Result<Timestamp, StoreError> {
        let (place, lasts) = (Arc::clone(&self.place), millis_up(lasts));
        let watch = move |txn: &mut Txn<'_>| {
            let (now, till) = (txn.now(), txn.now().saturating_add(lasts));
            Ok(Timestamp::from_millis(place.tower.extend(txn.shard(), now, till)))
        };
        self.call(shard, 0, watch).await
    }

    pub fn events(&self) -> Events {
        Events { place: Arc::clone(&self.place), receiver: None }
    }
}

/// The stream of events.
pub struct Events {
    place: Arc<super::place::Place>,
    /// None until the first call.
    receiver: Option<Receiver<Arc<[Event]>>>,
}

impl Events {
    pub async fn next(&mut self) -> StreamItem {
        let sender = &self.place.tower.sender;
        let Some(receiver) = &mut self.receiver else {
            self.receiver = Some(sender.subscribe());
            return StreamItem::Gap;
        };
        match receiver.recv().await {
            Ok(events) => StreamItem::Events(events.to_vec()),
            // The sender above keeps the channel open, so this is a stream that fell behind.
            Err(RecvError::Lagged(_) | RecvError::Closed) => {
                *receiver = sender.subscribe();
                StreamItem::Missed
            }
        }
    }
}

/// What the edge under way, and those before it, have to tell.
#[derive(Default)]
pub(crate) struct Gathered {
    is_watched: bool,
    /// Of the edge under way.
    fresh: Vec<Event>,
    /// Of the group.
    events: Vec<Event>,
}

impl Gathered {
    /// An edge begins.
    pub(crate) fn begin(&mut self, until: u64, now: u64) {
        self.is_watched = until > now;
        self.fresh.clear();
    }

    /// Whether somebody watches.
    pub(crate) const fn is_watched(&self) -> bool {
        self.is_watched
    }

    /// The edge has succeeded.
    pub(crate) fn end(&mut self) {
        self.events.append(&mut self.fresh);
    }

    pub(crate) fn take(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }
}

impl Txn<'_> {
    /// Tells what happens to a job, if anybody watches: before its body goes, and while the record
    /// still has its topic.
    pub(crate) fn tell_event(
        &mut self,
        job: &Record,
        what: impl FnOnce() -> EventKind,
    ) -> Result<(), StoreError> {
        if !self.events.is_watched {
            return Ok(());
        }
        let id = self.tables.records.id(job.number)?;
        if let (Some(id), Ok(topic)) = (id.and_then(|id| id.parse().ok()), job.topic.parse()) {
            let at = Timestamp::from_millis(self.now());
            self.events.fresh.push(Event { at, key: JobKey { topic, id }, kind: what() });
        }
        Ok(())
    }

    /// An attempt of a job is over, of which no more is known than how it ended. `due`: when it is
    /// to be due again, in ms.
    pub(crate) fn tell_attempt(
        &mut self,
        job: &Record,
        outcome: AttemptOutcome,
        due: Option<u64>,
    ) -> Result<(), StoreError> {
        self.tell_event(job, || EventKind::Attempt(ended(job, outcome, due)))
    }

    /// An attempt of a job is over, as was seen.
    pub(crate) fn tell_seen(
        &mut self,
        job: &Record,
        outcome: AttemptOutcome,
        due: Option<u64>,
        seen: &LastAttempt,
    ) -> Result<(), StoreError> {
        self.tell_event(job, || EventKind::Attempt(ended_as(job, outcome, due, seen)))
    }
}

fn ended(job: &Record, outcome: AttemptOutcome, due: Option<u64>) -> AttemptEnded {
    let due = due.map(Timestamp::from_millis);
    AttemptEnded { number: job.attempts, outcome, due, status: None, error: None, duration: None }
}

fn ended_as(job: &Record, outcome: AttemptOutcome, due: Option<u64>, seen: &LastAttempt) -> AttemptEnded {
    let Last { status, error, ms, .. } = Last::from(seen);
    AttemptEnded { status, error, duration: Some(Duration::from_millis(ms)), ..ended(job, outcome, due) }
}
