//! Wake-ups: hints over publish and subscribe. They may be lost, never needed: whoever
//! waits has a floor timer, and looks at everything after each (re)subscription.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use rand::RngExt as _;
use rand::rngs::StdRng;
use redis::aio::PubSubStream;
use ringback_core::contract::Wake;
use ringback_core::lane::{LaneId, PullLane};

use super::RedisStore;

/// The stream of wake-ups. It reconnects by itself and never ends.
pub struct Wakes(Messages);

impl Wakes {
    pub(crate) fn new(store: Arc<RedisStore>, rng: StdRng) -> Self {
        let channel = store.keys.channel();
        Self(Messages::new(store, channel, rng))
    }

    /// The next wake-up. Safe to drop and call again.
    pub async fn next(&mut self) -> Wake {
        loop {
            match self.0.next().await {
                Heard::Subscribed => return Wake::Subscribed,
                // The next subscription tells to look at everything.
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
            ("pull", Some(tag), Some(lane)) => {
                Some(Wake::Pull(keys.by_tag(tag)?, PullLane(LaneId::parse(lane)?)))
            }
            ("due", Some(tag), Some(us)) => {
                Some(Wake::Due(keys.by_tag(tag)?, Duration::from_micros(us.parse().ok()?)))
            }
            _ => None,
        }
    }
}

/// What came over a channel.
pub(crate) enum Heard {
    /// The subscription is new: anything may have been said before.
    Subscribed,
    /// The subscription broke: nothing is heard until the next one.
    Lost,
    Message(Vec<u8>),
}

/// What is said on a channel. It reconnects by itself and never ends.
pub(crate) struct Messages {
    store: Arc<RedisStore>,
    channel: String,
    messages: Option<PubSubStream>,
    failures: u32,
    /// Spreads the attempts of many processes that lost the same server.
    rng: StdRng,
}

impl Messages {
    pub(crate) fn new(store: Arc<RedisStore>, channel: String, rng: StdRng) -> Self {
        Self { store, channel, messages: None, failures: 0, rng }
    }

    /// Safe to drop and call again.
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
        match self.store.topology.listen(&self.channel).await {
            Ok(pubsub) => {
                self.messages = Some(pubsub.into_on_message());
                self.failures = 0;
                true
            }
            Err(error) => {
                // The first failure follows a subscription that was lost, or none at all.
                if self.failures <= 1 {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        channel = self.channel,
                        "cannot listen to the store; trying again"
                    );
                }
                self.failures = self.failures.max(1) + 1;
                false
            }
        }
    }
}
