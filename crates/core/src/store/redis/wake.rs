//! Wake-ups: hints over publish and subscribe. They may be lost, never needed: whoever
//! waits has a floor timer, and looks at everything after each (re)subscription.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use rand::RngExt as _;
use rand::rngs::StdRng;
use redis::aio::PubSubStream;

use super::RedisStore;
use super::layout::LaneId;
use crate::store::{PullLane, Wake};

/// The stream of wake-ups. It reconnects by itself and never ends.
pub(in crate::store) struct Wakes {
    store: Arc<RedisStore>,
    messages: Option<PubSubStream>,
    failures: u32,
    /// Spreads the attempts of many processes that lost the same server.
    rng: StdRng,
}

impl Wakes {
    pub(super) fn new(store: Arc<RedisStore>, rng: StdRng) -> Self {
        Self { store, messages: None, failures: 0, rng }
    }

    /// The next wake-up. Safe to drop and call again.
    pub(in crate::store) async fn next(&mut self) -> Wake {
        loop {
            let Some(messages) = &mut self.messages else {
                if self.subscribe().await {
                    return Wake::Subscribed;
                }
                continue;
            };
            match messages.next().await {
                Some(message) => {
                    let text = message.get_payload::<String>().unwrap_or_default();
                    if let Some(wake) = self.parse(&text) {
                        return wake;
                    }
                }
                None => {
                    self.messages = None;
                    self.failures = 1;
                }
            }
        }
    }

    async fn subscribe(&mut self) -> bool {
        if self.failures > 0 {
            let step = Duration::from_millis(25 << self.failures.min(5));
            tokio::time::sleep(step.mul_f64(self.rng.random_range(0.5..=1.0))).await;
        }
        match self.store.topology.listen(&self.store.keys.channel()).await {
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
                        "no wake-ups from the store; trying again"
                    );
                }
                self.failures = self.failures.max(1) + 1;
                false
            }
        }
    }

    fn parse(&self, text: &str) -> Option<Wake> {
        let mut words = text.split(' ');
        match (words.next()?, words.next(), words.next()) {
            ("members", None, None) => Some(Wake::Members),
            ("revival", None, None) => Some(Wake::Revival),
            ("ready", Some(tag), None) => Some(Wake::Ready(self.store.keys.by_tag(tag)?)),
            ("pull", Some(tag), Some(lane)) => {
                Some(Wake::Pull(self.store.keys.by_tag(tag)?, PullLane(LaneId::parse(lane)?)))
            }
            ("due", Some(tag), Some(us)) => {
                Some(Wake::Due(self.store.keys.by_tag(tag)?, Duration::from_micros(us.parse().ok()?)))
            }
            _ => None,
        }
    }
}
