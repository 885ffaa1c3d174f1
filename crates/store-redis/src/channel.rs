//! Subscriptions to channels, which reconnect by themselves, and the stream of wake-ups.
//!
//! Wake-ups are hints that may get lost. A task that waits for one also has a timer, and checks for work after each new
//! subscription.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _};
use rand::rngs::StdRng;
use redis::Value;
use redis::aio::{PubSub, PubSubSink, PubSubStream};
use ringback_core::backoff::Backoff;
use ringback_core::job::{Locator, Topic};
use ringback_core::store_types::{StoreError, Wake};
use tokio::time::{sleep, timeout};

use super::redis_store::RedisStore;
use super::topology::Node;

/// The first and the longest pause between two attempts to subscribe, before jitter.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(800));
/// How often the server of a subscription is pinged.
const PROBE_EVERY: Duration = Duration::from_secs(5);
/// How long the answer to a ping may take. Only its absence shows that no message arrives any more.
const PROBE_LIMIT: Duration = Duration::from_secs(3);

/// A message, or a change of the subscription.
pub(crate) enum Heard {
    /// The subscription is new. Messages may have been missed before.
    Subscribed,
    /// The subscription broke. No messages arrive until the next one.
    Lost,
    Message(Vec<u8>),
}

/// The messages of a channel. The stream never ends.
pub(crate) struct Channel {
    pub(crate) store: Arc<RedisStore>,
    name: String,
    state: State,
    /// Spreads the attempts of many processes that lost the same server.
    backoff: Backoff,
    /// Whether a failure has been logged since the last subscription.
    is_failing: bool,
}

/// The state of a subscription. It is kept between calls, so that [`Channel::next`] may be dropped at any time.
enum State {
    Subscribing(BoxFuture<'static, Result<(PubSub, Node), StoreError>>),
    Subscribed(Subscription),
}

struct Subscription {
    messages: PubSubStream,
    sink: PubSubSink,
    store: Arc<RedisStore>,
    server: Node,
    /// The next ping. False if no answer came.
    probe: BoxFuture<'static, bool>,
}

impl Channel {
    pub(crate) fn new(store: Arc<RedisStore>, name: String, rng: StdRng) -> Self {
        let state = subscribe(&store, &name, Duration::ZERO);
        let backoff = Backoff::between(PAUSES.0, PAUSES.1, rng);
        Self { store, name, state, backoff, is_failing: false }
    }

    /// Waits for the next message or change of the subscription; renews a lost one, with backoff. May be dropped.
    pub(crate) async fn next(&mut self) -> Heard {
        loop {
            match &mut self.state {
                State::Subscribed(subscription) => {
                    if let Some(message) = subscription.next().await {
                        return Heard::Message(message);
                    }
                    self.subscribe_later();
                    return Heard::Lost;
                }
                State::Subscribing(attempt) => match attempt.await {
                    Ok((pubsub, server)) => {
                        let store = Arc::clone(&self.store);
                        self.state = State::Subscribed(Subscription::new(pubsub, server, store));
                        self.backoff.reset();
                        self.is_failing = false;
                        return Heard::Subscribed;
                    }
                    Err(error) => {
                        self.report(&error);
                        self.subscribe_later();
                    }
                },
            }
        }
    }

    fn subscribe_later(&mut self) {
        self.state = subscribe(&self.store, &self.name, self.backoff.next());
    }

    /// Logs the first failure after a subscription was lost, or at the start.
    fn report(&mut self, error: &StoreError) {
        if !std::mem::replace(&mut self.is_failing, true) {
            tracing::warn!(
                error = error as &dyn std::error::Error,
                channel = self.name,
                "cannot listen to the store; trying again"
            );
        }
    }
}

fn subscribe(store: &Arc<RedisStore>, name: &str, pause: Duration) -> State {
    let (store, name) = (Arc::clone(store), name.to_owned());
    let attempt = async move {
        if !pause.is_zero() {
            sleep(pause).await;
        }
        store.topology.listen(&name).await
    };
    State::Subscribing(attempt.boxed())
}

impl Subscription {
    fn new(pubsub: PubSub, server: Node, store: Arc<RedisStore>) -> Self {
        let (sink, messages) = pubsub.split();
        let probe = probe(sink.clone());
        Self { messages, sink, store, server, probe }
    }

    /// Waits for the next message; `None` if the subscription is lost: the connection broke, the server does not answer
    /// pings, or another server publishes now.
    async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            tokio::select! {
                biased;
                message = self.messages.next() => return message.map(|message| message.get_payload_bytes().to_vec()),
                is_alive = &mut self.probe => {
                    if !is_alive || !self.store.topology.publishes_to(&self.server) {
                        tracing::debug!("nothing more can be heard on a subscription; subscribing anew");
                        return None;
                    }
                    self.probe = probe(self.sink.clone());
                }
            }
        }
    }
}

/// Pings the server after [`PROBE_EVERY`]. True if any answer comes within [`PROBE_LIMIT`].
fn probe(mut sink: PubSubSink) -> BoxFuture<'static, bool> {
    async move {
        sleep(PROBE_EVERY).await;
        timeout(PROBE_LIMIT, sink.ping::<Value>()).await.is_ok()
    }
    .boxed()
}

/// The stream of wake-ups. It reconnects by itself and never ends.
pub struct Wakes(Channel);

impl RedisStore {
    pub fn wakes(self: &Arc<Self>, rng: StdRng) -> Wakes {
        Wakes(Channel::new(Arc::clone(self), self.keys.channel("wake"), rng))
    }
}

impl Wakes {
    /// Waits for the next wake-up. Skips messages that are none. Safe to drop and call again.
    pub async fn next(&mut self) -> Wake {
        loop {
            match self.0.next().await {
                Heard::Subscribed => return Wake::Subscribed,
                // The next subscription makes all listeners check for work.
                Heard::Lost => {}
                Heard::Message(raw) => {
                    if let Some(wake) = std::str::from_utf8(&raw).ok().and_then(|text| self.parse(text)) {
                        return wake;
                    }
                }
            }
        }
    }

    fn parse(&self, text: &str) -> Option<Wake> {
        let keys = &self.0.store.keys;
        let mut words = text.split(' ');
        match (words.next()?, words.next(), words.next()) {
            ("members", None, None) => Some(Wake::Carriers),
            ("bulk", None, None) => Some(Wake::Bulk),
            ("cancel", Some(locator), None) => {
                let bytes = u128::from_str_radix(locator, 16).ok()?.to_be_bytes();
                Some(Wake::CancelRequested(Locator(*bytes.last_chunk()?)))
            }
            ("ready", Some(tag), None) => Some(Wake::Ready(keys.by_tag(tag)?)),
            ("pull", Some(tag), Some(topic)) => {
                Some(Wake::Pull(keys.by_tag(tag)?, Topic::from_stored(topic)?))
            }
            ("due", Some(tag), Some(us)) => {
                let grace = words.next()?;
                let [after, grace] = [us, grace].map(|us| us.parse().ok().map(Duration::from_micros));
                let (shard, after, grace) = (keys.by_tag(tag)?, after?, grace?);
                Some(if grace.is_zero() {
                    Wake::Due(shard, after)
                } else {
                    Wake::Awaited { shard, after, grace }
                })
            }
            _ => None,
        }
    }
}
