//! A subscription to a channel that reconnects by itself.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use rand::RngExt as _;
use rand::rngs::StdRng;
use redis::aio::PubSubStream;

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
