//! Live events for callers of `GET /v1/events`. The process has one subscription to the store,
//! and only while somebody listens. Each event is decoded and serialised once for all listeners.
//! A listener that reads too slowly is dropped, so that nobody waits for it.

mod bus;
mod listener_queue;
mod sse_batch;
mod store_subscription;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, stream};
use ringback_service::http_server::{FairLimiter, Holder, NoPermit};
use ringback_service::{Shutdown, Tasks};
use ringback_store::Store;
use tokio::time::timeout;

use self::bus::EventBus;
pub(crate) use self::listener_queue::Filter;
use self::listener_queue::{Next, Queue, Slot};
use crate::access::Standing;
use crate::error::ApiError;
use crate::limits::Deadline;
use crate::metrics::Metrics;

/// How often an idle stream sends a heartbeat.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// The heartbeat: a comment, which clients ignore.
const HEARTBEAT_LINE: &[u8] = b":\n\n";
/// The last event for a listener that reads too slowly.
const DROPPED: &[u8] = b"event: dropped\ndata: {}\n\n";

pub(crate) struct Events {
    bus: Arc<EventBus>,
    listeners: FairLimiter,
    metrics: Arc<Metrics>,
}

impl Events {
    /// Starts the task that subscribes. It ends with the shutdown.
    pub(crate) fn start(
        store: &Store,
        metrics: &Arc<Metrics>,
        max_listeners: usize,
        tasks: &mut Tasks,
        shutdown: &Shutdown,
    ) -> Self {
        let bus = Arc::new(EventBus::new(Arc::clone(metrics)));
        tasks.spawn("events", store_subscription::run(Arc::clone(&bus), store.clone(), shutdown.clone()));
        Self { bus, listeners: FairLimiter::new(max_listeners), metrics: Arc::clone(metrics) }
    }

    /// Begins to listen, once the store sends events. The stream has every event that matches `filter` and happens
    /// after this returns. It ends once the caller's key is deleted or expires.
    ///
    /// # Errors
    /// 503 if the process, or the holder of the caller's key, has too many listeners, or if the store sends no events
    /// before the deadline.
    pub(crate) async fn listen(
        &self,
        filter: Filter,
        holder: Holder,
        standing: Standing,
    ) -> Result<EventStream, ApiError> {
        let permit = self.listeners.take(holder).map_err(|why| match why {
            NoPermit::AllTaken => ApiError::retry_later(format_args!(
                "{} others are listening to events here, which is the limit",
                self.listeners.limit()
            )),
            NoPermit::HolderHas(held) => ApiError::retry_later(format_args!(
                "{held} others of your tenant, or at your address, are listening to events here, which is all that one may have"
            )),
        })?;
        let slot = Slot::new(permit, &self.metrics);
        let queue = Arc::new(Queue::new(filter, Some(slot)));
        self.bus.join(Arc::clone(&queue));
        let bus = Arc::clone(&self.bus);
        let stream = EventStream { bus, queue: Arc::clone(&queue), standing, is_over: false };
        if Deadline::from_now().bound(queue.ready()).await == Ok(true) {
            return Ok(stream);
        }
        Err(ApiError::retry_later("the store sends no events at the moment"))
    }
}

/// The events of one listener. Dropping it ends listening.
pub(crate) struct EventStream {
    bus: Arc<EventBus>,
    queue: Arc<Queue>,
    /// Whether the caller may still listen.
    standing: Standing,
    is_over: bool,
}

impl EventStream {
    /// The body of the response: events in the format of server-sent events.
    pub(crate) fn into_body(self) -> impl Stream<Item = Result<Bytes, Infallible>> + Send + use<> {
        stream::unfold(self, async |mut events| {
            let chunk = events.next().await?;
            Some((Ok(chunk), events))
        })
    }

    /// The next bytes to send: events, or a heartbeat after 15 s without one. `None` after `dropped`, at the shutdown,
    /// and once the caller's key has ended.
    async fn next(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        let next = self.standing.bound(timeout(HEARTBEAT, self.queue.next())).await.ok()?;
        match next {
            Err(_elapsed) => Some(Bytes::from_static(HEARTBEAT_LINE)),
            Ok(Next::Chunk(chunk)) => Some(chunk),
            Ok(Next::Dropped) => {
                self.is_over = true;
                Some(Bytes::from_static(DROPPED))
            }
            Ok(Next::End) => None,
        }
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.bus.leave(&self.queue);
    }
}
