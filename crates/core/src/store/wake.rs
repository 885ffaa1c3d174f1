//! Wake-ups: hints that something may be worth a look. They may be lost, never needed:
//! whoever waits has a floor timer, and looks at everything after each (re)subscription.

use std::time::Duration;

use super::{PullLane, Shard, embedded, redis};

/// What a wake-up says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// The subscription is new: anything may have happened before.
    Subscribed,
    /// A job or lease of the shard is due sooner than its carrier knew: after so long.
    Due(Shard, Duration),
    /// A lane of the shard went from empty to not empty.
    Ready(Shard),
    /// A lane of the shard for pull went from empty to not empty.
    Pull(Shard, PullLane),
    /// A carrier came or left.
    Members,
    /// There is a revival that nobody works on.
    Revival,
}

/// The stream of wake-ups. It reconnects by itself and never ends.
pub struct Wakes(Source);

enum Source {
    Redis(Box<redis::Wakes>),
    Embedded(embedded::Wakes),
}

impl Wakes {
    /// The next wake-up. Safe to drop and call again.
    pub async fn next(&mut self) -> Wake {
        match &mut self.0 {
            Source::Redis(wakes) => wakes.next().await,
            Source::Embedded(wakes) => wakes.next().await,
        }
    }
}

impl From<redis::Wakes> for Wakes {
    fn from(wakes: redis::Wakes) -> Self {
        Self(Source::Redis(Box::new(wakes)))
    }
}

impl From<embedded::Wakes> for Wakes {
    fn from(wakes: embedded::Wakes) -> Self {
        Self(Source::Embedded(wakes))
    }
}
