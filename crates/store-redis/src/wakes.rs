//! Wake-ups: hints over publish and subscribe. They may get lost: whoever waits also has a timer, and looks at
//! everything after each new subscription.

use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use ringback_core::contract::Wake;
use ringback_core::lane::LaneId;

use super::channel::{Channel, Heard};
use super::redis_store::RedisStore;

/// The stream of wake-ups. It reconnects by itself and never ends.
pub struct Wakes(Channel);

impl RedisStore {
    pub fn wakes(self: &Arc<Self>, rng: StdRng) -> Wakes {
        Wakes(Channel::new(Arc::clone(self), self.keys.wake_channel(), rng))
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
