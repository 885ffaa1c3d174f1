//! The outbox: dead letters whose notices are not published yet. The edge that makes a job dead
//! writes an entry in the same step. A carrier reads the entries, submits a notice for each, and
//! acknowledges them. An entry lies in the shard of the dead job and has all that the notice needs.

use std::time::Duration;

use bytes::Bytes;

use crate::clock::Timestamp;
use crate::job::{Callback, Context, Job, Topic, Trace};

/// The most entries that one call reads or acknowledges.
pub const MAX_NOTICES: usize = 100;
/// About how many bytes of entries one call reads.
pub const MAX_OUTBOX_BYTES: usize = 256 * 1024;
/// The topic of all notices. A dead job of this topic gets no notice.
pub const NOTICE_TOPIC: &str = "ringback.on-dead";

/// Whether this is the topic of notices.
pub fn is_notice_topic(topic: &Topic) -> bool {
    topic.name() == NOTICE_TOPIC
}

/// A job at the time it became dead, with all that its notice needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The job.
    pub job: Job,
    /// When it became dead.
    pub died: Timestamp,
    /// When it came to this store. Later than its creation if it was imported.
    pub arrived: Timestamp,
    /// The URL for the notice that the job itself brought.
    pub on_dead: Option<Callback>,
    /// The job's context.
    pub context: Context,
    /// The trace that the job belongs to.
    pub trace: Option<Trace>,
}

/// Identifies an entry of the outbox, in the backend's own form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxId(pub Bytes);

/// An entry whose notice is not published yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingNotice {
    /// Identifies the entry in the acknowledgement.
    pub id: OutboxId,
    /// The dead letter; `None` if the entry cannot be read.
    pub letter: Option<DeadLetter>,
}

/// The entries that are due now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outbox {
    /// The first of them.
    pub pending: Vec<PendingNotice>,
    /// The store's time.
    pub now: Timestamp,
}

/// What to do with entries that were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutboxAck {
    /// Entries to remove: their notices are published or not wanted.
    pub done: Vec<OutboxId>,
    /// Entries to try again after this time.
    pub later: Vec<(OutboxId, Duration)>,
}

/// The result of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckResult {
    /// Another carrier owns the shard. Nothing was done.
    Fenced,
    /// It is done. Contains the time until the next entry is due; `None` if the outbox is empty.
    Held(Option<Duration>),
}
