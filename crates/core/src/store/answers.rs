//! What the edges are asked with and answer: plain values, the same for every backend.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Lateness, Lease, StoreError};
use crate::clock::Timestamp;
use crate::job::{Job, JobKey};
use crate::outcome::Outcome;
use crate::state::State;
use crate::wire::StatesAnswer;

/// How safely jobs are kept, the least safe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Profile {
    /// A restart loses them.
    Memory,
    /// It cannot be told.
    Unknown,
    /// Synced every second: a crash can lose the last ones.
    Everysec,
    /// Synced before they are answered.
    Disk,
}

impl Profile {
    /// The word used in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Unknown => "unknown",
            Self::Everysec => "everysec",
            Self::Disk => "disk",
        }
    }
}

/// What a submit came to, and the job as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submitted {
    /// New, repeated or refused.
    pub answer: Answer,
    /// The job that has this name. Of one that was refused for lack of room only the name counts.
    pub job: Job,
}

impl Submitted {
    /// There is no room for a job.
    pub(super) fn refused(limit: Limit, key: &JobKey) -> Self {
        let job = Job {
            key: key.clone(),
            state: State::Delayed,
            due: Timestamp::default(),
            created: Timestamp::default(),
            attempts: 0,
            failures: 0,
            last: None,
            reason: None,
        };
        Self { answer: Answer::Full(limit), job }
    }
}

/// How a submit was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A new job.
    Created,
    /// The same content again: nothing changed.
    Repeated,
    /// Another job has this name: nothing changed.
    Conflict,
    /// There are too many of something in the job's shard: nothing changed.
    Full(Limit),
}

/// Of what a shard has no more than so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// [`MOST_TOPICS`](super::MOST_TOPICS) that have jobs or are paused.
    Topics,
    /// [`MOST_LANES`](super::MOST_LANES) that have jobs.
    Lanes,
}

/// What a cancel came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// No job of this name is known.
    Unknown,
    /// It is cancelled, now or before.
    Cancelled {
        /// A hand-over was begun and never settled, so it may still be under way.
        in_flight_unknown: bool,
    },
    /// It is being handed over; unless that succeeds it will be cancelled.
    Requested {
        /// Its lease has run out, so whether the hand-over is under way is not known.
        in_flight_unknown: bool,
    },
    /// It is done.
    TooLate,
}

/// What a reschedule, a run, a revive or a purge came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moved {
    /// It is done, now or by the same token before: the job as it is now; as it was, where it
    /// is purged.
    Applied(Job),
    /// The job's state forbids it; nothing changed.
    Refused(Job),
    /// No job of this name is known.
    Unknown,
}

/// The live carriers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members {
    /// Their names, in an order all agree on at rest.
    pub carriers: Vec<String>,
    /// When the first of the others runs out, unless it is heard of before.
    pub next_change: Option<Duration>,
    /// When a revival can be taken, unless that is told otherwise.
    pub next_revival: Option<Duration>,
}

/// One bounded pass of a carrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Another carrier holds the shard; nothing was done.
    Fenced,
    /// Done, and when something will be due again; zero: at once.
    Held {
        /// Jobs that were moved.
        moved: u32,
        /// recover: jobs buried as lost.
        other: u32,
        /// Until the next due time.
        next_due: Option<Duration>,
        /// Until the next lease runs out.
        next_lease: Option<Duration>,
        /// Until the next dead job has been kept long enough.
        next_dead: Option<Duration>,
        /// Until the next death is to be told.
        next_tell: Option<Duration>,
    },
}

impl Pass {
    /// The same with a job that is due after so long.
    #[must_use]
    pub fn with_due(mut self, wait: Duration) -> Self {
        if let Self::Held { next_due, .. } = &mut self {
            *next_due = Some(next_due.map_or(wait, |due| due.min(wait)));
        }
        self
    }
}

/// What a notifier asks for.
#[derive(Clone, Debug)]
pub struct Reserve<'a> {
    /// Who asks; unique per process.
    pub caller: &'a str,
    /// Counts the caller's reserves of this shard; the same again repeats the answer.
    pub sequence: u64,
    /// At most so many jobs.
    pub limit: usize,
    /// At most so many of a lane, where `rooms` does not say.
    pub lane_room: usize,
    /// Lanes with less room; 0 passes the lane.
    pub rooms: Vec<(String, usize)>,
    /// Random bits for the receipts.
    pub bits: [u8; 8],
    /// How much longer than the attempt's timeout (15 s at most) a lease is.
    pub margin: Duration,
}

/// What a reserve came to.
#[derive(Debug)]
pub struct Reserved {
    /// The jobs.
    pub leases: Vec<Lease>,
    /// There is more that could be taken.
    pub more: bool,
    /// Lanes that were passed, or taken only up to the room they were given, and have more.
    pub passed: Vec<String>,
}

/// What a renewal came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewed {
    /// The lease has a later deadline.
    Extended,
    /// The lease is no longer current.
    Stale,
}

/// What a settle came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It took effect.
    Applied,
    /// It had taken effect before.
    Replayed,
    /// The lease had run out; the success counted all the same.
    Late,
    /// The lease was no longer current; nothing changed.
    Stale,
}

/// Counts of a shard, or of all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// Jobs ever accepted.
    pub accepted: u64,
    /// Jobs per state.
    pub states: StatesAnswer,
    /// The topics that had a job; on Redis at most the 10,000 latest.
    pub topics: BTreeSet<String>,
    /// Lateness over the last five minutes.
    pub lateness: Lateness,
    /// Memories of ended jobs dropped before their time, for lack of room.
    pub forgotten_early: u64,
    /// Deaths that are still to be told.
    pub untold: u64,
}

impl Stats {
    pub(super) fn merge(&mut self, other: Self) {
        let (mine, theirs) = (&mut self.states, other.states);
        mine.delayed += theirs.delayed;
        mine.ready += theirs.ready;
        mine.reserved += theirs.reserved;
        mine.done += theirs.done;
        mine.dead += theirs.dead;
        mine.cancelled += theirs.cancelled;
        mine.purged += theirs.purged;
        self.accepted += other.accepted;
        self.forgotten_early += other.forgotten_early;
        self.untold += other.untold;
        self.topics.extend(other.topics);
        self.lateness.merge(&other.lateness);
    }
}

/// What could not be settled, handed back for another try.
#[derive(Debug)]
pub struct Unsettled {
    /// Why.
    pub error: StoreError,
    /// The leases with their outcomes.
    pub items: Vec<(Lease, Outcome)>,
}
