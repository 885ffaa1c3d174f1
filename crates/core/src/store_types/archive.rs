//! The archive outbox: the ended jobs that are to go to a database. While an archive is attached to a shard, the
//! transition that ends a job adds an entry in the same step. An archiver takes the first entries, writes them to its
//! database, and then removes them. An entry has all that the archive keeps of a job, so later changes do not matter.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use strum::VariantArray as _;

use super::attempts::Attempt;
use crate::clock::Timestamp;
use crate::enum_names::must_be;
use crate::job::{Delivery, Job};
use crate::state::State;

/// The most entries that one call takes.
pub const MAX_ARCHIVE_ENTRIES: usize = 500;
/// About how many bytes of entries, with the logs of their attempts, one call takes.
pub const MAX_ARCHIVE_BYTES: usize = 1024 * 1024;

/// How a job ended, as the archive distinguishes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[derive(strum::Display, strum::EnumString, strum::IntoStaticStr, strum::VariantNames, strum::VariantArray)]
#[strum(serialize_all = "lowercase", parse_err_ty = String, parse_err_fn = must_be::<Self>)]
pub enum EndedState {
    /// It was delivered, or a consumer has finished it.
    Done,
    /// It failed for good, for any reason but its expiry.
    Dead,
    /// It is dead because it had expired.
    Expired,
    Cancelled,
    /// It was dead, and was removed on request or because its retention had ended.
    Purged,
}

impl EndedState {
    /// The state of the job in the archive: `dead` for expired jobs too.
    pub fn state(self) -> &'static str {
        if self == Self::Expired { Self::Dead.into() } else { self.into() }
    }

    /// The number of the kind in stored entries, from 1. It never changes.
    pub const fn code(self) -> u8 {
        self as u8 + 1
    }

    /// The kind with a number; `None` for a number that no kind has.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::VARIANTS.get(usize::from(code).wrapping_sub(1)).copied()
    }

    /// The kind of a job that is dead for this reason: expired or dead.
    pub fn of_reason(reason: &str) -> Self {
        if reason == EXPIRED { Self::Expired } else { Self::Dead }
    }
}

/// The reason of a job that is dead because it had expired.
pub const EXPIRED: &str = "expired";

/// A set of kinds of ended jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedStates(u8);

impl EndedStates {
    pub fn all() -> Self {
        Self::of(EndedState::VARIANTS.iter().copied())
    }

    pub fn of(kinds: impl IntoIterator<Item = EndedState>) -> Self {
        Self(kinds.into_iter().fold(0, |bits, kind| bits | 1 << (kind.code() - 1)))
    }

    /// Whether a kind is among them.
    pub const fn has(self, kind: EndedState) -> bool {
        self.0 & 1 << (kind.code() - 1) != 0
    }

    /// The kinds of both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// A bit for each kind, that of done jobs the lowest. They are stored and never change.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The kinds of these bits; bits of no kind are ignored.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & 0b1_1111)
    }
}

impl FromIterator<EndedState> for EndedStates {
    fn from_iter<T: IntoIterator<Item = EndedState>>(kinds: T) -> Self {
        Self::of(kinds)
    }
}

/// What happens when the archive outbox of a shard is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[derive(strum::Display, strum::EnumString, strum::VariantNames)]
#[strum(serialize_all = "lowercase", parse_err_ty = String, parse_err_fn = must_be::<Self>)]
pub enum WhenFull {
    /// The shard takes no submits, and at twice the bound it gives no jobs to deliver.
    #[default]
    Stall,
    /// The oldest entries are dropped and counted.
    Drop,
}

/// The settings of a shard's archive outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchiveSettings {
    /// The ended jobs that get an entry.
    pub states: EndedStates,
    /// Whether entries have the bodies of jobs.
    pub with_bodies: bool,
    /// How many bytes the entries of this shard may take.
    pub bound: u64,
    /// What happens beyond that.
    pub when_full: WhenFull,
}

/// The archive outbox of a shard, or of all shards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArchiveStatus {
    /// What is put into it; `None` if no archive is attached. Of all shards, that of the first one with an archive.
    pub settings: Option<ArchiveSettings>,
    pub pending: u64,
    /// How many bytes they take.
    pub bytes: u64,
    /// How many bytes they may take; 0 without an archive.
    pub bound: u64,
    /// How many entries were dropped since the installation began, because it was full or the archive was detached.
    pub dropped: u64,
    /// When the job of the first entry ended.
    pub oldest: Option<Timestamp>,
    /// How many shards refuse submits because of it.
    pub stalled: u16,
}

impl ArchiveStatus {
    /// Adds the outbox of another shard: sums the numbers, and keeps the first settings and the earliest `oldest`.
    pub fn add(&mut self, other: &Self) {
        let Self { settings, pending, bytes, bound, dropped, oldest, stalled } = *other;
        self.settings = self.settings.or(settings);
        self.pending += pending;
        self.bytes += bytes;
        self.bound += bound;
        self.dropped += dropped;
        self.oldest = self.oldest.into_iter().chain(oldest).min();
        self.stalled += stalled;
    }
}

/// A job as it ended, with all that the archive keeps of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ArchivedJob {
    pub kind: EndedState,
    /// When it ended.
    pub at: Timestamp,
    /// The job as it was then: its state is that of the end, and that of a purged job is dead.
    pub job: Job,
    /// When it was first due.
    pub first_due: Timestamp,
    /// What was submitted; `None` if it cannot be read. The body is empty unless `has_body`.
    pub delivery: Option<Delivery>,
    /// Whether the body was kept.
    pub has_body: bool,
    /// How many attempts former generations of the same name had: the job's own begin after them.
    pub former_attempts: u32,
    /// The attempts that were logged, the newest last.
    pub attempts: Vec<Attempt>,
}

impl ArchivedJob {
    pub fn ended(kind: EndedState, mut job: Job) -> Job {
        job.state = match kind {
            EndedState::Done => State::Done,
            EndedState::Cancelled => State::Cancelled,
            EndedState::Dead | EndedState::Expired | EndedState::Purged => State::Dead,
        };
        if !matches!(job.state, State::Dead) {
            job.reason = None;
        }
        job
    }

    /// Whether the log has every attempt of this generation of the job.
    pub fn is_attempts_complete(&self) -> bool {
        let own = self.former_attempts + 1..=self.job.attempts;
        let logged = self.attempts.iter().filter(|attempt| own.contains(&attempt.number)).count();
        logged as u64 == u64::from(self.job.attempts.saturating_sub(self.former_attempts))
    }
}

/// Names the first entries of an archive outbox. Entries are numbered without gaps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutboxPart {
    pub first: u64,
    /// How many they are.
    pub count: u64,
    /// What the last one begins with, in the backend's own form: after a fail-over others may have their numbers.
    pub last: Bytes,
}

/// The first entries of an archive outbox.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArchiveEntries {
    pub part: OutboxPart,
    /// The entries, `None` for one that cannot be read.
    pub jobs: Vec<Option<ArchivedJob>>,
}

/// The result of taking entries.
#[derive(Clone, Debug, PartialEq)]
pub enum TakeEntries {
    /// They are this caller's until its time has passed.
    Taken(ArchiveEntries),
    /// Another archiver works on the shard. It has it for this long at most, unless it takes more.
    Busy(Duration),
}
