//! `EventBus`: the listeners of this process and the state of its subscription. It sends each
//! listener a `ready` event once every shard publishes events, the events that the listener's filter matches,
//! and `missed` when events may have been lost.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use ringback_core::store_types::Event;
use tokio::sync::Notify;

use super::listener_queue::{Pushed, Queue};
use super::sse_batch::Batch;
use crate::metrics::Metrics;

/// The first event of a stream. No later event is left out. It also sets the client's reconnect time
/// in ms.
const READY: &[u8] = b"retry: 1000\nevent: ready\ndata: {}\n\n";
/// Sent when events may have been lost.
const MISSED: &[u8] = b"event: missed\ndata: {}\n\n";

pub(super) struct EventBus {
    state: Mutex<State>,
    changed: Notify,
    metrics: Arc<Metrics>,
}

#[derive(Default)]
struct State {
    listeners: Vec<Arc<Queue>>,
    /// The number of the current subscription, counted from 1; `None` while there is none.
    subscription: Option<u64>,
    last_subscription: u64,
    /// There is a subscription, and every shard is watched.
    is_ready: bool,
    is_over: bool,
}

impl EventBus {
    pub(super) fn new(metrics: Arc<Metrics>) -> Self {
        Self { state: Mutex::default(), changed: Notify::new(), metrics }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn join(&self, queue: Arc<Queue>) {
        let mut state = self.lock();
        if state.is_over {
            queue.end();
        } else if state.is_ready {
            queue.subscribed(READY, None);
        }
        state.listeners.push(queue);
        drop(state);
        self.changed.notify_waiters();
    }

    pub(super) fn leave(&self, queue: &Arc<Queue>) {
        self.lock().listeners.retain(|other| !Arc::ptr_eq(other, queue));
        self.changed.notify_waiters();
    }

    /// Waits until `find` returns a value.
    async fn wait_for<T>(&self, mut find: impl FnMut(&mut State) -> Option<T>) -> T {
        loop {
            let changed = self.changed.notified();
            if let Some(found) = find(&mut self.lock()) {
                return found;
            }
            changed.await;
        }
    }

    pub(super) async fn has_listeners(&self) {
        self.wait_for(|state| (!state.listeners.is_empty()).then_some(())).await;
    }

    /// Waits until nobody listens, and ends the subscription for the next listener.
    pub(super) async fn has_no_listeners(&self) {
        self.wait_for(|state| state.listeners.is_empty().then(|| state.end_subscription())).await;
    }

    /// Waits for a subscription other than `last`, and returns its number.
    pub(super) async fn subscription_after(&self, last: Option<u64>) -> u64 {
        self.wait_for(|state| state.subscription.filter(|number| last != Some(*number))).await
    }

    /// Records that a new subscription has begun. It is not ready until [`Self::watched`].
    pub(super) fn subscribed(&self) {
        let mut state = self.lock();
        state.last_subscription += 1;
        (state.subscription, state.is_ready) = (Some(state.last_subscription), false);
        drop(state);
        self.changed.notify_waiters();
    }

    pub(super) fn unsubscribed(&self) {
        self.lock().end_subscription();
    }

    /// Sends `missed` to every open listener, because some events were lost. The subscription goes on.
    pub(super) fn missed(&self) {
        self.lock().listeners.iter().for_each(|queue| {
            queue.push(Bytes::from_static(MISSED));
        });
    }

    /// Records that every shard publishes events, and sends `ready` to listeners that wait, and `missed` to the others
    /// if there was a gap. Does nothing if another subscription has begun, or if it is ready and was unbroken.
    pub(super) fn watched(&self, subscription: u64, watch: Watch) {
        let mut state = self.lock();
        if state.subscription != Some(subscription) || (state.is_ready && watch == Watch::Unbroken) {
            return;
        }
        state.is_ready = true;
        let missed = (watch == Watch::New).then_some(MISSED);
        state.listeners.iter().for_each(|queue| queue.subscribed(READY, missed));
    }

    /// Records that some shards may not publish events, so that new listeners have to wait.
    pub(super) fn unwatched(&self) {
        self.lock().is_ready = false;
    }

    pub(super) fn publish(&self, events: &[Event]) {
        let (batch, mut sent) = (Batch::of(events), 0);
        let mut state = self.lock();
        state.listeners.retain(|queue| {
            let Some(part) = batch.part(&queue.filter) else { return true };
            match queue.push(part.bytes) {
                Pushed::Queued => sent += part.events,
                Pushed::Skipped => {}
                Pushed::Full => self.metrics.listener_dropped(),
            }
            !queue.is_dropped()
        });
        let is_empty = state.listeners.is_empty();
        drop(state);
        if is_empty {
            self.changed.notify_waiters();
        }
        self.metrics.events_sent(sent);
    }

    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.is_over = true;
        state.listeners.iter().for_each(|queue| queue.end());
    }
}

impl State {
    fn end_subscription(&mut self) {
        (self.subscription, self.is_ready) = (None, false);
    }
}

/// Whether the shards were watched all the time since the last call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Watch {
    Unbroken,
    New,
}

#[cfg(test)]
mod tests {
    use opentelemetry::global;
    use ringback_core::clock::Timestamp;
    use ringback_core::job::{JobKey, Tags};
    use ringback_core::store_types::EventKind;

    use super::*;
    use crate::events::listener_queue::{Filter, Next};

    fn with_a_listener() -> (EventBus, Arc<Queue>) {
        let bus = EventBus::new(Arc::new(Metrics::new(&global::meter("test"))));
        let queue = Arc::new(Queue::new(Filter::default(), None));
        bus.join(Arc::clone(&queue));
        bus.subscribed();
        bus.watched(1, Watch::New);
        (bus, queue)
    }

    #[tokio::test]
    async fn when_the_last_listener_is_dropped_the_subscription_ends() {
        let (bus, _queue) = with_a_listener();
        let key = JobKey { topic: "t".parse().unwrap(), id: "i".parse().unwrap() };
        let reason = "x".repeat(200).into();
        let (at, tags, kind) = (Timestamp::default(), Tags::default(), EventKind::Dead { reason });
        let events = vec![Event { at, key, tags, kind }; 500];
        let flood = async {
            loop {
                bus.publish(&events);
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            () = bus.has_no_listeners() => {}
            () = flood => {}
        }
        assert!(bus.lock().subscription.is_none() && !bus.lock().is_ready);
    }

    #[tokio::test]
    async fn listeners_learn_that_events_were_missed_and_the_subscription_goes_on() {
        let (bus, queue) = with_a_listener();
        bus.missed();
        bus.watched(1, Watch::Unbroken);
        bus.watched(1, Watch::New);
        for event in [READY, MISSED, MISSED] {
            assert_eq!(queue.next().await, Next::Chunk(Bytes::from_static(event)));
        }
        assert_eq!(bus.lock().subscription, Some(1));
    }
}
