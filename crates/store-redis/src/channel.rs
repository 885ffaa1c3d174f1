//! Subscriptions to channels, which reconnect by themselves, and the stream of wake-ups.
//!
//! Wake-ups are hints that may get lost. Whoever waits for one also has a timer, and looks at everything after
//! each new subscription.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use rand::RngExt as _;
use rand::rngs::StdRng;
use redis::aio::PubSubStream;
use ringback_core::contract::Wake;
use ringback_core::lane::LaneId;

use super::redis_store::RedisStore;

/// A message, or a change of the subscription.
pub(crate) enum Heard {
    /// The subscription is new. Messages may have been missed before.
    Subscribed,
    /// The subscription broke. Nothing is heard until the next one.
    Lost,
    Message(Vec<u8>),
}

/// The messages of a channel. The stream never ends.
pub(crate) struct Channel {
    pub(crate) store: Arc<RedisStore>,
    name: String,
    messages: Option<PubSubStream>,
    failures: u32,
    /// Spreads the attempts of many processes that lost the same server.
    rng: StdRng,
}

impl Channel {
    pub(crate) fn new(store: Arc<RedisStore>, name: String, rng: StdRng) -> Self {
        Self { store, name, messages: None, failures: 0, rng }
    }

    /// The next message. Safe to drop and call again.
    pub(crate) async fn next(&mut self) -> Heard {
        loop {
            let Some(messages) = &mut self.messages else {
                if self.subscribe().await {
                    return Heard::Subscribed;
                }
                continue;
            };
            if let Some(message) = messages.next().await {
                return Heard::Message(message.get_payload_bytes().to_vec());
            }
            self.messages = None;
            self.failures = 1;
            return Heard::Lost;
        }
    }

    async fn subscribe(&mut self) -> bool {
        if self.failures > 0 {
            let step = Duration::from_millis(25 << self.failures.min(5));
            tokio::time::sleep(step.mul_f64(self.rng.random_range(0.5..=1.0))).await;
        }
        match self.store.topology.listen(&self.name).await {
            Ok(pubsub) => {
                self.messages = Some(pubsub.into_on_message());
                self.failures = 0;
                true
            }
            Err(error) => {
                // Logged once: for the first failure after a lost subscription, or at the start.
                if self.failures <= 1 {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        channel = self.name,
                        "cannot listen to the store; trying again"
                    );
                }
                self.failures = self.failures.max(1) + 1;
                false
            }
        }
    }
}

/// The stream of wake-ups. It reconnects by itself and never ends.
pub struct Wakes(Channel);

impl RedisStore {
    pub fn wakes(self: &Arc<Self>, rng: StdRng) -> Wakes {
        Wakes(Channel::new(Arc::clone(self), self.keys.channel("wake"), rng))
    }
}

impl Wakes {
    /// The next wake-up. Safe to drop and call again.
    pub async fn next(&mut self) -> Wake {
        loop {
            match self.0.next().await {
                Heard::Subscribed => return Wake::Subscribed,
                // The next subscription makes everybody look at everything.
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
            ("revival", None, None) => Some(Wake::Redrive),
            ("ready", Some(tag), None) => Some(Wake::Ready(keys.by_tag(tag)?)),
            ("pull", Some(tag), Some(lane)) => Some(Wake::Pull(keys.by_tag(tag)?, LaneId::parse(lane)?)),
            ("due", Some(tag), Some(us)) => {
                Some(Wake::Due(keys.by_tag(tag)?, Duration::from_micros(us.parse().ok()?)))
            }
            _ => None,
        }
    }
}
