//! What one listener has not fetched yet: a bounded number of bytes and pieces. When it is full
//! all of it is thrown away, so that who does not read holds no memory.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;

use super::{Filter, Place};

/// The most bytes that wait, and the most pieces.
const MOST_BYTES: usize = 1024 * 1024;
const MOST_PIECES: usize = 4096;

/// What is taken out of a queue.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken {
    Chunk(Bytes),
    /// The listener was too slow; nothing follows.
    Dropped,
    /// Nothing follows.
    Over,
}

/// Whether more is to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The subscription does not stand yet.
    Waiting,
    Open,
    Dropped,
    Over,
}

/// Whether a piece found room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pushed {
    Taken,
    /// The listener is not there yet, or no longer.
    Passed,
    /// There was no room: the listener is dropped by now.
    Full,
}

pub(super) struct Queue {
    pub(super) filter: Filter,
    inner: Mutex<Inner>,
    changed: Notify,
}

struct Inner {
    phase: Phase,
    pieces: VecDeque<Bytes>,
    bytes: usize,
    /// Given back with the last word, however long the connection stays.
    _place: Option<Place>,
}

impl Inner {
    const fn ended(phase: Phase) -> Self {
        Self { phase, pieces: VecDeque::new(), bytes: 0, _place: None }
    }
}

impl Queue {
    pub(super) fn new(filter: Filter, place: Option<Place>) -> Self {
        let inner = Inner { _place: place, ..Inner::ended(Phase::Waiting) };
        Self { filter, inner: Mutex::new(inner), changed: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The subscription stands: the listener's first word, or where it has had that, another.
    pub(super) fn stands(&self, first: &'static [u8], other: Option<&'static [u8]>) {
        if let Some(word) = if self.open() { Some(first) } else { other } {
            self.push(Bytes::from_static(word));
        }
    }

    /// Whether it was waiting for this.
    fn open(&self) -> bool {
        let mut inner = self.lock();
        let was_waiting = inner.phase == Phase::Waiting;
        if was_waiting {
            inner.phase = Phase::Open;
        }
        was_waiting
    }

    /// A piece for the listener, if it listens.
    pub(super) fn push(&self, piece: Bytes) -> Pushed {
        let mut inner = self.lock();
        if inner.phase != Phase::Open {
            return Pushed::Passed;
        }
        let has_room = inner.pieces.len() < MOST_PIECES && inner.bytes + piece.len() <= MOST_BYTES;
        if has_room {
            inner.bytes += piece.len();
            inner.pieces.push_back(piece);
        } else {
            *inner = Inner::ended(Phase::Dropped);
        }
        drop(inner);
        self.changed.notify_one();
        if has_room { Pushed::Taken } else { Pushed::Full }
    }

    pub(super) fn is_dropped(&self) -> bool {
        self.lock().phase == Phase::Dropped
    }

    /// Nothing more is to come; what waits is not sent any more.
    pub(super) fn end(&self) {
        let mut inner = self.lock();
        if inner.phase != Phase::Dropped {
            *inner = Inner::ended(Phase::Over);
        }
        drop(inner);
        self.changed.notify_one();
    }

    /// Waits until the subscription stands; false when it never will.
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

    /// Waits for what is to be sent next. Safe to drop and call again.
    pub(super) async fn next(&self) -> Taken {
        loop {
            if let Some(taken) = self.take() {
                return taken;
            }
            self.changed.notified().await;
        }
    }

    fn take(&self) -> Option<Taken> {
        let mut inner = self.lock();
        if let Some(piece) = inner.pieces.pop_front() {
            inner.bytes -= piece.len();
            return Some(Taken::Chunk(piece));
        }
        match inner.phase {
            Phase::Waiting | Phase::Open => None,
            Phase::Dropped => Some(Taken::Dropped),
            Phase::Over => Some(Taken::Over),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open() -> Queue {
        let queue = Queue::new(Filter::default(), None);
        queue.stands(b"first", None);
        assert_eq!(queue.take(), Some(Taken::Chunk(Bytes::from_static(b"first"))));
        queue
    }

    #[test]
    fn nothing_is_queued_before_the_subscription_stands() {
        let queue = Queue::new(Filter::default(), None);
        assert_eq!(queue.push(Bytes::from_static(b"early")), Pushed::Passed);
        assert_eq!(queue.take(), None);
        queue.stands(b"first", Some(b"other"));
        queue.stands(b"first", None);
        queue.stands(b"first", Some(b"other"));
        assert_eq!(queue.take(), Some(Taken::Chunk(Bytes::from_static(b"first"))));
        assert_eq!(queue.take(), Some(Taken::Chunk(Bytes::from_static(b"other"))));
        assert_eq!(queue.take(), None);
    }

    #[test]
    fn a_full_queue_is_emptied_and_its_listener_dropped() {
        let queue = open();
        let piece = Bytes::from(vec![b'x'; MOST_BYTES / 4]);
        for _ in 0..4 {
            assert_eq!(queue.push(piece.clone()), Pushed::Taken);
        }
        assert_eq!(queue.push(Bytes::from_static(b"x")), Pushed::Full);
        assert_eq!(queue.lock().pieces.capacity(), 0);
        assert_eq!(queue.push(Bytes::from_static(b"x")), Pushed::Passed);
        assert_eq!(queue.take(), Some(Taken::Dropped));
    }

    #[test]
    fn many_small_pieces_fill_a_queue_too_and_what_is_fetched_makes_room() {
        let queue = open();
        for _ in 0..3 * MOST_PIECES {
            assert_eq!(queue.push(Bytes::from_static(b"x")), Pushed::Taken);
            queue.take();
        }
        assert_eq!(queue.lock().bytes, 0);
        let pushed = (0..=MOST_PIECES).map(|_| queue.push(Bytes::from_static(b"x")));
        assert_eq!(pushed.last(), Some(Pushed::Full));
    }
}
