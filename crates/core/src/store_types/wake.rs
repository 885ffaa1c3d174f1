//! Wake-ups: hints that there may be something to do. They may be lost, and nothing depends on them:
//! every listener also has a timer, and looks at everything after each (re)subscription.

use std::time::Duration;

use super::shard::Shard;
use crate::job::{Locator, Topic};

/// A wake-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wake {
    /// The subscription is new. Anything may have happened before.
    Subscribed,
    /// A job or a lease of the shard is due after this time, sooner than its carrier expects.
    Due(Shard, Duration),
    /// The same while a notifier waits for due jobs. The carrier leaves the job to it for a while.
    Awaited {
        /// The shard.
        shard: Shard,
        /// The time until the job is due.
        after: Duration,
        /// For how long after that the carrier leaves it.
        grace: Duration,
    },
    /// A cancel of a reserved job was requested.
    CancelRequested(Locator),
    /// A push lane of the shard is no longer empty.
    Ready(Shard),
    /// The shard has pull jobs of a topic again.
    Pull(Shard, Topic),
    /// A carrier came or left.
    Carriers,
    /// A bulk operation has no worker.
    Bulk,
}
