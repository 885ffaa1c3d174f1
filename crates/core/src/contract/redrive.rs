//! Redrives: calls that revive many dead jobs of a topic at a given rate. A redrive is stored; a
//! carrier takes it and works on it page by page, and another one goes on if that carrier is gone.
//! The store counts the revived jobs in the calls that revive them.

use std::fmt::{self, Display};
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::dead::DeadFilter;
use super::error::StoreError;
use super::moves::Token;
use crate::clock::Timestamp;
use crate::hex::{self, Hex};
use crate::job::Topic;

/// The most redrives that run at the same time.
pub const MAX_REDRIVES: usize = 16;
/// How long an ended redrive is remembered.
pub const ENDED_REDRIVE_RETENTION: Duration = Duration::from_secs(24 * 3600);
/// The most ended redrives that are remembered.
pub const MAX_ENDED_REDRIVES: usize = 200;
/// The highest rate, in jobs a second.
pub const MAX_RATE: u32 = 100_000;

/// The id of a redrive. It is also the [`Token`] of all its moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RedriveId(pub [u8; 8]);

impl From<Token> for RedriveId {
    fn from(Token(token): Token) -> Self {
        Self(token)
    }
}

impl Display for RedriveId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hex(&self.0).fmt(f)
    }
}

/// A text that is not the id of a redrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the id of a revival")]
pub struct InvalidRedriveId;

impl FromStr for RedriveId {
    type Err = InvalidRedriveId;

    fn from_str(text: &str) -> Result<Self, InvalidRedriveId> {
        hex::read(text).map(Self).ok_or(InvalidRedriveId)
    }
}

/// The state of a redrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedriveState {
    /// There may be more jobs to revive.
    Running,
    /// All matching jobs are revived.
    Done,
    /// It was stopped before its end.
    Stopped,
}

impl RedriveState {
    /// All states.
    pub const ALL: [Self; 3] = [Self::Running, Self::Done, Self::Stopped];

    /// Its name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Stopped => "stopped",
        }
    }
}

/// A redrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redrive {
    /// Its id.
    pub id: RedriveId,
    /// Which jobs to revive, of those that were dead when it began.
    pub filter: DeadFilter,
    /// Jobs a second.
    pub rate: u32,
    /// When it began, by the store's clock.
    pub started: Timestamp,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// Its state.
    pub state: RedriveState,
    /// How many jobs it has revived.
    pub revived: u64,
}

impl Redrive {
    /// The filter limited to jobs that were dead when the redrive began.
    pub fn wanted(&self) -> DeadFilter {
        let ends = self.started.plus(Duration::from_millis(1));
        let before = self.filter.before.map_or(ends, |before| before.min(ends));
        DeadFilter { before: Some(before), ..self.filter.clone() }
    }
}

/// Filter and rate of a redrive as both backends store them, packed with postcard. Times are in ms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedriveJob {
    topic: String,
    reason: Option<String>,
    after: Option<u64>,
    before: Option<u64>,
    /// Jobs a second.
    pub rate: u32,
}

impl RedriveJob {
    /// The stored form of a filter and a rate.
    pub fn new(filter: &DeadFilter, rate: u32) -> Self {
        Self {
            topic: filter.topic.as_str().to_owned(),
            reason: filter.reason.clone(),
            after: filter.after.map(Timestamp::as_millis),
            before: filter.before.map(Timestamp::as_millis),
            rate,
        }
    }

    /// The filter.
    ///
    /// # Errors
    /// [`StoreError::Unreadable`] if the stored topic is not one.
    pub fn filter(self) -> Result<DeadFilter, StoreError> {
        Ok(DeadFilter {
            topic: Topic::from_stored(&self.topic).ok_or(StoreError::Unreadable("a redrive"))?,
            reason: self.reason,
            after: self.after.map(Timestamp::from_millis),
            before: self.before.map(Timestamp::from_millis),
        })
    }
}

/// The result of starting a redrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedriveStart {
    /// It runs, started now or by an earlier call with the same token.
    Redrive(Redrive),
    /// [`MAX_REDRIVES`] run already.
    TooMany,
}

/// Identifies the worker of a redrive. Random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerId(pub [u8; 8]);

/// The result of asking for a redrive to work on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TakenRedrive {
    /// The caller works on this one now.
    Redrive(Redrive),
    /// All have workers. Contains the time until the first is free, unless its worker keeps it.
    Later(Duration),
    /// None is running.
    Nothing,
}

/// The result of reviving some jobs of a redrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redriven {
    /// This many of the jobs were still dead and are ready now.
    Jobs(u64),
    /// The redrive has ended. Nothing was done.
    Over,
}

/// A redrive as a backend stores it, with the number of revived jobs. `None`: ask the shards for it.
pub type StoredRedrive = (Redrive, Option<u64>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_is_written() {
        let id = RedriveId([0, 1, 2, 3, 4, 5, 0xfe, 0xff]);
        assert_eq!(id.to_string(), "000102030405feff");
        assert_eq!(id.to_string().parse(), Ok(id));
        for text in ["", "0", "000102030405FEFF", "+00102030405feff", "000102030405feff0"] {
            assert_eq!(text.parse::<RedriveId>(), Err(InvalidRedriveId), "{text}");
        }
    }

    #[test]
    fn jobs_that_died_after_the_start_are_not_wanted() {
        let redrive = |before: Option<u64>| Redrive {
            id: RedriveId([0; 8]),
            filter: DeadFilter {
                topic: "t".parse().unwrap(),
                reason: None,
                after: None,
                before: before.map(Timestamp::from_millis),
            },
            rate: 1,
            started: Timestamp::from_millis(1000),
            ended: None,
            state: RedriveState::Running,
            revived: 0,
        };
        let before = |given| redrive(given).wanted().before.map(Timestamp::as_millis);
        assert_eq!(
            (before(None), before(Some(900)), before(Some(5000))),
            (Some(1001), Some(900), Some(1001))
        );
    }
}
