//! The bounded queue of one client of the event stream, with its filter and its permit to listen. When the queue is
//! full, its events are discarded and the client is disconnected, so that a client that does not read takes no memory.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use ringback_admission::Principal;
use ringback_core::job::{JobId, Topic};
use ringback_core::store_types::{Event, EventName};
use ringback_service::http_server::Permit;
use tokio::sync::Notify;

use crate::metrics::Metrics;

/// The most bytes of a queue.
const MAX_BYTES: usize = 1024 * 1024;
/// The most chunks of a queue.
const MAX_CHUNKS: usize = 4096;

/// Which events a listener wants. An empty field matches every event.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    pub(crate) topic: Option<Topic>,
    pub(crate) id: Option<JobId>,
    pub(crate) kinds: Vec<EventName>,
    /// Who listens: the events are those of its topics.
    pub(crate) caller: Option<Arc<Principal>>,
}

impl Filter {
    pub(super) fn matches(&self, event: &Event) -> bool {
        self.topic.as_ref().is_none_or(|topic| *topic == event.key.topic)
            && self.id.as_ref().is_none_or(|id| *id == event.key.id)
            && self.caller.as_ref().is_none_or(|caller| caller.reaches(&event.key.topic))
            && (self.kinds.is_empty() || self.kinds.contains(&EventName::from(&event.kind)))
    }
}

/// A permit to be one of the listeners, also counted by the metric. Dropping it frees it.
pub(super) struct Slot {
    metrics: Arc<Metrics>,
    _permit: Permit,
}

impl Slot {
    pub(super) fn new(permit: Permit, metrics: &Arc<Metrics>) -> Self {
        metrics.listener_came();
        Self { metrics: Arc::clone(metrics), _permit: permit }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.metrics.listener_left();
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Chunk(Bytes),
    /// The listener was too slow. Nothing follows.
    Dropped,
    /// The process stops. Nothing follows.
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting,
    Open,
    Dropped,
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pushed {
    Queued,
    /// The listener is not ready yet, or has ended.
    Skipped,
    /// The queue was full. The listener has been dropped.
    Full,
}

pub(super) struct Queue {
    pub(super) filter: Filter,
    inner: Mutex<Inner>,
    changed: Notify,
}

struct Inner {
    phase: Phase,
    chunks: VecDeque<Bytes>,
    bytes: usize,
    /// Freed when the listener ends, even if its connection stays open.
    _slot: Option<Slot>,
}

impl Inner {
    const fn ended(phase: Phase) -> Self {
        Self { phase, chunks: VecDeque::new(), bytes: 0, _slot: None }
    }
}

impl Queue {
    pub(super) fn new(filter: Filter, slot: Option<Slot>) -> Self {
        let inner = Inner { _slot: slot, ..Inner::ended(Phase::Waiting) };
        Self { filter, inner: Mutex::new(inner), changed: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The subscription is ready. Sends `first` to a listener that waited for that, and `again`
    /// to any other.
    pub(super) fn subscribed(&self, first: &'static [u8], again: Option<&'static [u8]>) {
        if let Some(event) = if self.open() { Some(first) } else { again } {
            self.push(Bytes::from_static(event));
        }
    }

    /// Opens a queue that waits for the subscription. Returns whether it did wait.
    fn open(&self) -> bool {
        let mut inner = self.lock();
        let was_waiting = inner.phase == Phase::Waiting;
        if was_waiting {
            inner.phase = Phase::Open;
        }
        was_waiting
    }

    /// Appends a chunk, unless the listener is not ready or has ended. If the queue is full, discards all of its chunks
    /// and drops the listener.
    pub(super) fn push(&self, chunk: Bytes) -> Pushed {
        let mut inner = self.lock();
        if inner.phase != Phase::Open {
            return Pushed::Skipped;
        }
        let has_room = inner.chunks.len() < MAX_CHUNKS && inner.bytes + chunk.len() <= MAX_BYTES;
        if has_room {
            inner.bytes += chunk.len();
            inner.chunks.push_back(chunk);
        } else {
            *inner = Inner::ended(Phase::Dropped);
        }
        drop(inner);
        self.changed.notify_one();
        if has_room { Pushed::Queued } else { Pushed::Full }
    }

    pub(super) fn is_dropped(&self) -> bool {
        self.lock().phase == Phase::Dropped
    }

    /// Ends the queue at the shutdown and discards its chunks. A queue that was dropped stays so.
    pub(super) fn end(&self) {
        let mut inner = self.lock();
        if inner.phase != Phase::Dropped {
            *inner = Inner::ended(Phase::Over);
        }
        drop(inner);
        self.changed.notify_one();
    }

    /// Waits until the subscription is ready, or the listener has been dropped since. Returns false if the process
    /// stops first.
    pub(super) async fn ready(&self) -> bool {
        loop {
            match self.lock().phase {
                Phase::Waiting => {}
                Phase::Open | Phase::Dropped => return true,
                Phase::Over => return false,
            }
            self.changed.notified().await;
        }
    }

    /// Waits for the next chunk or the end. Safe to cancel.
    pub(super) async fn next(&self) -> Next {
        loop {
            if let Some(next) = self.try_next() {
                return next;
            }
            self.changed.notified().await;
        }
    }

    fn try_next(&self) -> Option<Next> {
        let mut inner = self.lock();
        if let Some(chunk) = inner.chunks.pop_front() {
            inner.bytes -= chunk.len();
            return Some(Next::Chunk(chunk));
        }
        match inner.phase {
            Phase::Waiting | Phase::Open => None,
            Phase::Dropped => Some(Next::Dropped),
            Phase::Over => Some(Next::End),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open() -> Queue {
        let queue = Queue::new(Filter::default(), None);
        queue.subscribed(b"first", None);
        assert_eq!(queue.try_next(), Some(Next::Chunk(Bytes::from_static(b"first"))));
        queue
    }

    #[test]
    fn nothing_is_queued_before_the_subscription_is_ready() {
        let queue = Queue::new(Filter::default(), None);
        assert_eq!(queue.push(Bytes::from_static(b"early")), Pushed::Skipped);
        assert_eq!(queue.try_next(), None);
        queue.subscribed(b"first", Some(b"other"));
        queue.subscribed(b"first", None);
        queue.subscribed(b"first", Some(b"other"));
        assert_eq!(queue.try_next(), Some(Next::Chunk(Bytes::from_static(b"first"))));
        assert_eq!(queue.try_next(), Some(Next::Chunk(Bytes::from_static(b"other"))));
        assert_eq!(queue.try_next(), None);
    }

    #[test]
    fn a_full_queue_is_emptied_and_its_listener_dropped() {
        let queue = open();
        let chunk = Bytes::from(vec![b'x'; MAX_BYTES / 4]);
        for _ in 0..4 {
            assert_eq!(queue.push(chunk.clone()), Pushed::Queued);
        }
        assert_eq!(queue.push(Bytes::from_static(b"x")), Pushed::Full);
        assert_eq!(queue.lock().chunks.capacity(), 0);
        assert_eq!(queue.push(Bytes::from_static(b"x")), Pushed::Skipped);
        assert_eq!(queue.try_next(), Some(Next::Dropped));
    }

    #[test]
    fn many_small_chunks_fill_a_queue_and_reading_makes_room() {
        let queue = open();
        for _ in 0..3 * MAX_CHUNKS {
            assert_eq!(queue.push(Bytes::from_static(b"x")), Pushed::Queued);
            queue.try_next();
        }
        assert_eq!(queue.lock().bytes, 0);
        let pushed = (0..=MAX_CHUNKS).map(|_| queue.push(Bytes::from_static(b"x")));
        assert_eq!(pushed.last(), Some(Pushed::Full));
    }
}
