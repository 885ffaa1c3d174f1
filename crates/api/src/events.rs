//! Events for those who listen: one subscription for the whole process, and only while anybody
//! listens. Each event is decoded and written out once; `queue` is what one listener has not
//! fetched yet, and one whose queue is full is dropped, never waited for. `hear` hands on what the
//! store tells, `hub` knows who listens, watches the shards, and says what may be missing.

mod batch;
mod hear;
mod hub;
mod queue;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, stream};
use ringback_core::contract::{Event, EventName};
use ringback_core::job::{JobId, Topic};
use ringback_service::{Shutdown, Tasks};
use ringback_store::Store;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use self::hub::Hub;
use self::queue::{Queue, Taken};
use crate::deadline::Deadline;
use crate::error::ApiError;
use crate::metrics::Metrics;

/// How many listen at once where nothing else is said.
const MOST: usize = 100;
/// How often a stream shows that it stands while nothing happens.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// A comment, which says nothing.
const BEAT: &[u8] = b":\n\n";
/// The last word to a listener that reads too slowly.
const DROPPED: &[u8] = b"event: dropped\ndata: {}\n\n";

/// Which events a listener wants: what is empty wants all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    pub(crate) topic: Option<Topic>,
    pub(crate) id: Option<JobId>,
    pub(crate) kinds: Vec<EventName>,
}

impl Filter {
    fn takes(&self, event: &Event) -> bool {
        self.topic.as_ref().is_none_or(|topic| *topic == event.key.topic)
            && self.id.as_ref().is_none_or(|id| *id == event.key.id)
            && (self.kinds.is_empty() || self.kinds.contains(&event.kind.name()))
    }
}

/// The events of a process.
pub(crate) struct Events {
    hub: Arc<Hub>,
    places: Arc<Semaphore>,
    most: usize,
    metrics: Arc<Metrics>,
}

impl Events {
    /// Its task ends with the shutdown.
    pub(crate) fn start(
        store: &Store,
        metrics: &Arc<Metrics>,
        tasks: &mut Tasks,
        shutdown: &Shutdown,
    ) -> Self {
        let hub = Arc::new(Hub::new(Arc::clone(metrics)));
        tasks.spawn("events", hub::run(Arc::clone(&hub), store.clone(), shutdown.clone()));
        Self { hub, places: Arc::new(Semaphore::new(MOST)), most: MOST, metrics: Arc::clone(metrics) }
    }

    /// At most so many listen at once. Those who do by now do not count.
    pub(crate) fn bound(&mut self, most: usize) {
        (self.places, self.most) = (Arc::new(Semaphore::new(most)), most);
    }

    /// Begins to listen: from the moment it is there nothing is left out. It waits for the store
    /// as long as any request does.
    pub(crate) async fn listen(&self, filter: Filter) -> Result<Listening, ApiError> {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            return Err(ApiError::too_many(format_args!("{} others listen to events here", self.most)));
        };
        let place = Place::new(place, &self.metrics);
        let queue = Arc::new(Queue::new(filter, Some(place)));
        let listening = Listening::new(&self.hub, Arc::clone(&queue));
        if Deadline::from_now().bound(queue.ready()).await == Ok(true) {
            return Ok(listening);
        }
        Err(ApiError::too_many("the store does not tell of events at the moment"))
    }
}

/// One of the listeners that there may be.
struct Place {
    metrics: Arc<Metrics>,
    _permit: OwnedSemaphorePermit,
}

impl Place {
    fn new(permit: OwnedSemaphorePermit, metrics: &Arc<Metrics>) -> Self {
        metrics.listener_came();
        Self { metrics: Arc::clone(metrics), _permit: permit }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.metrics.listener_left();
    }
}

/// A listener. It leaves when it is dropped.
pub(crate) struct Listening {
    hub: Arc<Hub>,
    queue: Arc<Queue>,
    /// It has had its last word.
    is_over: bool,
}

impl Listening {
    fn new(hub: &Arc<Hub>, queue: Arc<Queue>) -> Self {
        hub.join(Arc::clone(&queue));
        Self { hub: Arc::clone(hub), queue, is_over: false }
    }

    /// Its events, written out as they are sent.
    pub(crate) fn stream(self) -> impl Stream<Item = Result<Bytes, Infallible>> + Send + use<> {
        stream::unfold(self, async |mut listening| {
            let chunk = listening.next().await?;
            Some((Ok(chunk), listening))
        })
    }

    /// What is to be sent next; none at the end.
    async fn next(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        match timeout(HEARTBEAT, self.queue.next()).await {
            Err(_elapsed) => Some(Bytes::from_static(BEAT)),
            Ok(Taken::Chunk(chunk)) => Some(chunk),
            Ok(Taken::Dropped) => {
                self.is_over = true;
                Some(Bytes::from_static(DROPPED))
            }
            Ok(Taken::Over) => None,
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.hub.leave(&self.queue);
    }
}
