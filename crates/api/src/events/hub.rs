//! The one subscription of the process, and who listens to it. While anybody does, every shard is
//! watched, again and again; a listener has its first word once both stand, and is told when
//! something may be missing.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::try_join_all;
use ringback_core::clock::Timestamp;
use ringback_core::contract::{Event, StoreError};
use ringback_service::Shutdown;
use ringback_store::Store;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::batch::Batch;
use super::hear::hear;
use super::queue::{Pushed, Queue};
use crate::error;
use crate::metrics::Metrics;

/// For how long a shard is watched, and how often again.
const WATCH: Duration = Duration::from_secs(30);
const WATCH_AGAIN: Duration = Duration::from_secs(10);
/// After how long a watch that failed is tried again.
const PAUSE: Duration = Duration::from_millis(250);

/// The first word: from here on nothing is left out. It also says after how many ms to come again.
const READY: &[u8] = b"retry: 1000\nevent: ready\ndata: {}\n\n";
/// Something may have happened that was not told.
const MISSED: &[u8] = b"event: missed\ndata: {}\n\n";

/// Who listens, and whether there is something to be heard.
pub(super) struct Hub {
    state: Mutex<State>,
    changed: Notify,
    metrics: Arc<Metrics>,
}

#[derive(Default)]
struct State {
    listeners: Vec<Arc<Queue>>,
    /// Which subscription it is, counted from 1; none where it is broken.
    subscription: Option<u64>,
    /// How many there were.
    subscriptions: u64,
    /// The subscription stands, and every shard is watched.
    stands: bool,
    is_over: bool,
}

impl Hub {
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
        } else if state.stands {
            queue.stands(READY, None);
        }
        state.listeners.push(queue);
        drop(state);
        self.changed.notify_waiters();
    }

    pub(super) fn leave(&self, queue: &Arc<Queue>) {
        self.lock().listeners.retain(|other| !Arc::ptr_eq(other, queue));
        self.changed.notify_waiters();
    }

    /// Waits until the state is so.
    async fn until(&self, is_it: impl Fn(&State) -> bool) {
        loop {
            let changed = self.changed.notified();
            if is_it(&self.lock()) {
                return;
            }
            changed.await;
        }
    }

    /// The subscription is new: every shard is to be watched anew.
    pub(super) fn subscribed(&self) {
        let mut state = self.lock();
        state.subscriptions += 1;
        (state.subscription, state.stands) = (Some(state.subscriptions), false);
        drop(state);
        self.changed.notify_waiters();
    }

    /// Nothing is told until the next subscription.
    pub(super) fn broken(&self) {
        self.lock().end_subscription();
    }

    /// Something of the subscription was lost; it goes on.
    pub(super) fn missed(&self) {
        self.lock().listeners.iter().for_each(|queue| {
            queue.push(Bytes::from_static(MISSED));
        });
    }

    /// Waits until nobody listens. The subscription has ended by then for who comes next.
    async fn deserted(&self) {
        loop {
            let changed = self.changed.notified();
            {
                let mut state = self.lock();
                if state.listeners.is_empty() {
                    state.end_subscription();
                    return;
                }
            }
            changed.await;
        }
    }

    /// Every shard is watched under this subscription.
    fn watched(&self, subscription: u64, held: Held) {
        let mut state = self.lock();
        if state.subscription != Some(subscription) || (state.stands && held == Held::AllAlong) {
            return;
        }
        state.stands = true;
        let missed = (held == Held::Anew).then_some(MISSED);
        state.listeners.iter().for_each(|queue| queue.stands(READY, missed));
    }

    /// Nobody can say whether every shard is watched: who comes now has to wait.
    fn unsure(&self) {
        self.lock().stands = false;
    }

    pub(super) fn tell(&self, events: &[Event]) {
        let (batch, mut told) = (Batch::of(events), 0);
        let mut state = self.lock();
        state.listeners.retain(|queue| {
            let Some(part) = batch.part(&queue.filter) else { return true };
            match queue.push(part.bytes) {
                Pushed::Taken => told += part.events,
                Pushed::Passed => {}
                Pushed::Full => self.metrics.listener_dropped(),
            }
            !queue.is_dropped()
        });
        let is_deserted = state.listeners.is_empty();
        drop(state);
        if is_deserted {
            self.changed.notify_waiters();
        }
        self.metrics.events_told(told);
    }

    fn end(&self) {
        let mut state = self.lock();
        state.is_over = true;
        state.listeners.iter().for_each(|queue| queue.end());
    }
}

impl State {
    fn end_subscription(&mut self) {
        (self.subscription, self.stands) = (None, false);
    }
}

/// Whether the shards were watched without a pause.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    AllAlong,
    Anew,
}

/// Until the shutdown; then every stream ends.
pub(super) async fn run(hub: Arc<Hub>, store: Store, shutdown: Shutdown) {
    let work = async {
        loop {
            hub.until(|state| !state.listeners.is_empty()).await;
            tokio::select! {
                () = hear(&hub, &store) => {}
                () = watch(&hub, &store) => {}
                () = hub.deserted() => {}
            }
        }
    };
    tokio::select! {
        () = work => {}
        () = shutdown.stopping() => {}
    }
    hub.end();
}

/// Watches every shard while a subscription stands, at once with each new one.
async fn watch(hub: &Hub, store: &Store) {
    let mut last = None;
    loop {
        hub.until(|state| state.subscription.is_some()).await;
        let Some(subscription) = hub.lock().subscription else { continue };
        let begun = Instant::now();
        let pause = match watch_all(store).await {
            Ok(since) => {
                let now = Some((subscription, since));
                let held = if last == now { Held::AllAlong } else { Held::Anew };
                last = now;
                hub.watched(subscription, held);
                WATCH_AGAIN.saturating_sub(begun.elapsed())
            }
            Err(error) => {
                error::log(&error);
                hub.unsure();
                PAUSE
            }
        };
        let another = hub.until(|state| state.subscription.is_some_and(|now| now != subscription));
        timeout(pause, another).await.ok();
    }
}

/// Since when each shard is watched.
async fn watch_all(store: &Store) -> Result<Vec<Timestamp>, StoreError> {
    try_join_all(store.shards().map(|shard| store.watch(shard, WATCH))).await
}

#[cfg(test)]
mod tests {
    use opentelemetry::global;
    use ringback_core::contract::EventKind;
    use ringback_core::job::JobKey;

    use super::*;
    use crate::events::Filter;
    use crate::events::queue::Taken;

    fn listened_to() -> (Hub, Arc<Queue>) {
        let hub = Hub::new(Arc::new(Metrics::new(&global::meter("test"))));
        let queue = Arc::new(Queue::new(Filter::default(), None));
        hub.join(Arc::clone(&queue));
        hub.subscribed();
        hub.watched(1, Held::Anew);
        (hub, queue)
    }

    #[tokio::test]
    async fn when_the_last_listener_is_dropped_nobody_listens() {
        let (hub, _queue) = listened_to();
        let key = JobKey { topic: "t".parse().unwrap(), id: "i".parse().unwrap() };
        let reason = "x".repeat(200).into();
        let events = vec![Event { at: Timestamp::default(), key, kind: EventKind::Dead { reason } }; 500];
        let flood = async {
            loop {
                hub.tell(&events);
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            () = hub.deserted() => {}
            () = flood => {}
        }
        assert!(hub.lock().subscription.is_none() && !hub.lock().stands);
    }

    #[tokio::test]
    async fn what_was_missed_is_told_to_who_listens_and_the_subscription_goes_on() {
        let (hub, queue) = listened_to();
        hub.missed();
        hub.watched(1, Held::AllAlong);
        hub.watched(1, Held::Anew);
        for word in [READY, MISSED, MISSED] {
            assert_eq!(queue.next().await, Taken::Chunk(Bytes::from_static(word)));
        }
        assert_eq!(hub.lock().subscription, Some(1));
    }
}
