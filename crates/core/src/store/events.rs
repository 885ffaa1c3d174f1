//! Events: what happens to jobs, told while somebody watches. They come from the edges
//! themselves, so those of one job come in the order in which they happened. They are live only:
//! nothing is kept for who was not there, and no edge waits for who is.

use std::str::FromStr;
use std::time::Duration;

use rand::rngs::StdRng;

use super::{Backend, Shard, Store, StoreError, embedded, redis};
use crate::clock::Timestamp;
use crate::job::JobKey;

/// What happened to a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, by the store's clock.
    pub at: Timestamp,
    /// To which job.
    pub key: JobKey,
    /// What.
    pub what: Happened,
}

/// What can happen to a job, with what is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happened {
    /// It was accepted. One that is due by then is ready at once.
    Submitted {
        /// When it is due.
        due: Timestamp,
    },
    /// It is ready: its time has come, or a call made it so.
    Promoted,
    /// An attempt is over.
    Attempt(Ended),
    /// It was handed over, which is its end.
    Done,
    /// It was given up.
    Dead {
        /// Why.
        reason: Box<str>,
    },
    /// It was cancelled, which is its end.
    Cancelled,
}

/// What came of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Which hand-over it was, from 1.
    pub number: u32,
    /// The word that it ended with.
    pub outcome: AttemptOutcome,
    /// When the job is due again, where it is to wait.
    pub due: Option<Timestamp>,
    /// The answer's status, where there was an answer and it is known.
    pub status: Option<u16>,
    /// The class of the error, or a consumer's words.
    pub error: Option<Box<str>>,
    /// How long it took, where that is known: of a success only where somebody watched when the job
    /// was reserved, or a consumer had it.
    pub duration: Option<Duration>,
}

/// The word with which an attempt ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// The job was handed over.
    Complete,
    /// It failed, and is to be tried again.
    Retry,
    /// It failed, and is given up.
    Bury,
    /// It was not tried, or is not to count.
    Release,
    /// Nobody said in time what came of it. Of a job for pull that is a failure, unless it was to be
    /// cancelled.
    Lost,
}

impl AttemptOutcome {
    /// The word used in the API and the docs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Retry => "retry",
            Self::Bury => "bury",
            Self::Release => "release",
            Self::Lost => "lost",
        }
    }
}

/// The kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Of [`Happened::Submitted`].
    Submitted,
    /// Of [`Happened::Promoted`].
    Promoted,
    /// Of [`Happened::Attempt`].
    Attempt,
    /// Of [`Happened::Done`].
    Done,
    /// Of [`Happened::Dead`].
    Dead,
    /// Of [`Happened::Cancelled`].
    Cancelled,
}

impl EventKind {
    /// All of them, in the order of a job's life.
    pub const ALL: [Self; 6] =
        [Self::Submitted, Self::Promoted, Self::Attempt, Self::Done, Self::Dead, Self::Cancelled];

    /// The word used in the API and the docs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Submitted => "submitted",
            Self::Promoted => "promoted",
            Self::Attempt => "attempt",
            Self::Done => "done",
            Self::Dead => "dead",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What is no kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no kind of event")]
pub struct NoEventKind;

impl FromStr for EventKind {
    type Err = NoEventKind;

    fn from_str(text: &str) -> Result<Self, NoEventKind> {
        Self::ALL.into_iter().find(|kind| kind.name() == text).ok_or(NoEventKind)
    }
}

impl Happened {
    /// Its kind.
    pub const fn kind(&self) -> EventKind {
        match self {
            Self::Submitted { .. } => EventKind::Submitted,
            Self::Promoted => EventKind::Promoted,
            Self::Attempt(_) => EventKind::Attempt,
            Self::Done => EventKind::Done,
            Self::Dead { .. } => EventKind::Dead,
            Self::Cancelled => EventKind::Cancelled,
        }
    }
}

/// What a stream of events says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// The subscription is new: anything may have happened before that is not told.
    Gap,
    /// Something was told that is lost; the subscription goes on.
    Missed,
    /// The subscription broke: nothing is told until the next gap.
    Lost,
    /// What happened, in order for each job.
    Events(Vec<Event>),
}

/// The stream of events. It reconnects by itself and never ends.
pub struct Events(Source);

enum Source {
    Redis(Box<redis::Events>),
    Embedded(embedded::Events),
}

impl Events {
    /// What is told next; the first is a [`News::Gap`]. Safe to drop and call again. It must be
    /// called again soon: what is not fetched waits in memory, or is lost.
    pub async fn next(&mut self) -> News {
        match &mut self.0 {
            Source::Redis(events) => events.next().await,
            Source::Embedded(events) => events.next().await,
        }
    }
}

impl Store {
    /// What happens in a shard is told for so long from now on, to every stream of events that
    /// stands. Answers since when it is told, by the store's clock: while that stays the same nothing
    /// in between was left out.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating does no harm.
    pub async fn watch(&self, shard: Shard, lasts: Duration) -> Result<Timestamp, StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.watch(shard, lasts).await,
            Backend::Embedded(store) => store.watch(shard, lasts).await,
        }
    }

    /// A new stream of events, of all shards that are watched; `rng` spreads its attempts to
    /// subscribe again.
    pub fn events(&self, rng: StdRng) -> Events {
        Events(match &self.backend {
            Backend::Redis(store) => Source::Redis(Box::new(store.events(rng))),
            Backend::Embedded(store) => Source::Embedded(store.events()),
        })
    }
}
