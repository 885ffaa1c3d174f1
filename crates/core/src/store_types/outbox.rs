//! The outbox: jobs that died or are done, and whose notices are not published yet. The transition that ends a
//! job writes an entry in the same step: for each death, and for a success where somebody wants to know of
//! it. A carrier reads the entries, submits a notice for each, and acknowledges them. An entry lies in the
//! shard of the job and has all that the notice needs.

use std::time::Duration;

use bytes::{Buf, Bytes, TryGetError};

use super::payload::NoticeParts;
use crate::clock::Timestamp;
use crate::job::{Callback, Context, Job, Topic, Trace};
use crate::state::State;

/// The most entries that one call reads or acknowledges.
pub const MAX_NOTICES: usize = 100;
/// About how many bytes of entries one call reads.
pub const MAX_OUTBOX_BYTES: usize = 256 * 1024;
/// The topics of notices: of jobs that died, and of jobs that are done. A job of these topics gets no notice.
pub const NOTICE_TOPICS: [&str; 2] = ["ringback.on-dead", "ringback.on-done"];

pub fn is_notice_topic(topic: &Topic) -> bool {
    NOTICE_TOPICS.contains(&topic.name())
}

/// A job at the time it died or was done, with all that its notice needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedJob {
    pub job: Job,
    /// How the receiver answered, if the job is done; `None` if it is dead.
    pub success: Option<Success>,
    pub at: Timestamp,
    /// When it came to this store. Later than its creation if it was imported.
    pub arrived: Timestamp,
    /// The URL for the notice that the job itself brought.
    pub url: Option<Callback>,
    pub context: Context,
    pub trace: Option<Trace>,
}

impl EndedJob {
    /// An entry for a job that ended at `at`. Without `success` the job is dead and `url` is its `on_dead`. With it,
    /// the job becomes done without a reason, and `url` is its `on_done`.
    pub fn new(
        mut job: Job,
        success: Option<Success>,
        [at, arrived]: [Timestamp; 2],
        parts: NoticeParts,
    ) -> Self {
        let NoticeParts { on_dead, on_done, context, trace } = parts;
        let mut url = on_dead;
        if success.is_some() {
            // It may have been dead before.
            (job.state, job.reason) = (State::Done, None);
            url = on_done;
        }
        Self { job, success, at, arrived, url, context, trace }
    }
}

/// The answer of a receiver that has accepted a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Success {
    pub status: u16,
    /// The start of its body, at most [`MAX_ANSWER`](super::MAX_ANSWER) bytes.
    pub answer: Bytes,
}

impl Success {
    /// The form in the entries of both backends: the status, or 0 for a death; unless it is 0, the length of the answer
    /// (2 bytes each) and the answer.
    pub fn pack(success: Option<&Self>) -> Vec<u8> {
        let Some(Self { status, answer }) = success else { return vec![0; 2] };
        let length = u16::try_from(answer.len()).expect("the start of an answer has a limit below 64 KiB");
        [&status.to_be_bytes()[..], &length.to_be_bytes(), answer].concat()
    }

    /// Reads the result of [`pack`](Self::pack) from the front of an entry; `None` for a death.
    ///
    /// # Errors
    /// If the entry is cut off.
    pub fn take(entry: &mut impl Buf) -> Result<Option<Self>, TryGetError> {
        let status = entry.try_get_u16()?;
        if status == 0 {
            return Ok(None);
        }
        let requested = usize::from(entry.try_get_u16()?);
        let available = entry.remaining();
        if available < requested {
            return Err(TryGetError { requested, available });
        }
        Ok(Some(Self { status, answer: entry.copy_to_bytes(requested) }))
    }
}

/// Identifies an entry of the outbox, in the backend's own form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxId(pub Bytes);

/// An entry whose notice is not published yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingNotice {
    /// Identifies the entry in the acknowledgement.
    pub id: OutboxId,
    /// The job; `None` if the entry cannot be read.
    pub ended: Option<EndedJob>,
}

/// The entries that are due now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outbox {
    /// The first of them.
    pub pending: Vec<PendingNotice>,
    pub now: Timestamp,
}

/// The acknowledgement of entries that were read.
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
