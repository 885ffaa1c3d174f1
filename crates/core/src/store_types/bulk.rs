//! Bulk operations: calls that change many jobs at a given rate, such as to cancel all jobs with a tag, or to revive the
//! dead jobs of a topic. A bulk operation is stored; a carrier takes it and works on it page by page, and another one
//! goes on if that carrier is gone. The store counts the changed jobs in the calls that change them.

use std::fmt::{self, Display};
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::dead::DeadFilter;
use super::filter::Filter;
use super::moves::Token;
use crate::clock::Timestamp;
use crate::hex::{self, Hex};
use crate::job::{Due, Tenant, TenantScope};
use crate::state::State;

/// The most bulk operations that run at the same time.
pub const MAX_BULKS: usize = 16;
/// How long an ended bulk operation is remembered.
pub const ENDED_BULK_RETENTION: Duration = Duration::from_secs(24 * 3600);
/// The most ended bulk operations that are remembered.
pub const MAX_ENDED_BULKS: usize = 200;
/// The highest rate, in jobs a second.
pub const MAX_RATE: u32 = 100_000;

/// The id of a bulk operation. It is also the [`Token`] of all its moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BulkId(pub [u8; 8]);

impl From<Token> for BulkId {
    fn from(Token(token): Token) -> Self {
        Self(token)
    }
}

impl Display for BulkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hex(&self.0).fmt(f)
    }
}

/// A text that is not the id of a bulk operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the id of a bulk operation")]
pub struct InvalidBulkId;

impl FromStr for BulkId {
    type Err = InvalidBulkId;

    fn from_str(text: &str) -> Result<Self, InvalidBulkId> {
        hex::read(text).map(Self).ok_or(InvalidBulkId)
    }
}

/// The state of a bulk operation.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::Display,
    strum::VariantArray,
    ToSchema
)]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum BulkState {
    /// There may be more jobs to change.
    Running,
    /// All matching jobs are changed.
    Done,
    /// It was stopped before its end.
    Stopped,
}

/// What a bulk operation does to each job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[derive(strum::Display, strum::EnumDiscriminants, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
#[strum_discriminants(
    doc = "What a bulk operation does, without when jobs are due then.",
    name(BulkVerb),
    derive(Serialize, Deserialize, ToSchema, strum::Display, strum::IntoStaticStr, strum::VariantArray),
    schema(as = BulkAction),
    serde(rename_all = "lowercase"),
    strum(serialize_all = "lowercase")
)]
pub enum BulkAction {
    /// delayed, ready, dead → cancelled. A reserved job is cancelled if its delivery fails.
    Cancel,
    /// delayed → ready.
    Run,
    /// dead → ready.
    Revive,
    /// delayed → delayed at another time, or ready. A delay counts from when the job is changed.
    Reschedule(Due),
    /// dead → gone.
    Purge,
}

impl BulkAction {
    /// Limits a filter without a state to the state that the action changes, if that is only one.
    #[must_use]
    pub fn narrowed(self, filter: Filter) -> Filter {
        let only = if let [only] = self.states() { Some(*only) } else { None };
        Filter { state: filter.state.or(only), ..filter }
    }

    /// The states of the jobs that the action changes. Jobs in other states stay as they are.
    pub const fn states(self) -> &'static [State] {
        match self {
            Self::Cancel => &[State::Delayed, State::Ready, State::Reserved, State::Dead],
            Self::Run | Self::Reschedule(_) => &[State::Delayed],
            Self::Revive | Self::Purge => &[State::Dead],
        }
    }
}

/// The jobs that a bulk operation changes, and the change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BulkTarget {
    /// It revives dead jobs of a topic, in the order of their death.
    Dead(DeadFilter),
    /// It changes the jobs that a filter fits, of those that were created before it began.
    Jobs(Box<Filter>, BulkAction),
}

impl BulkTarget {
    /// The tenant whose jobs it changes; `None` for jobs without a tenant, or for the jobs of all.
    pub fn tenant(&self) -> Option<Tenant> {
        match self {
            Self::Dead(filter) => filter.topic.tenant(),
            Self::Jobs(filter, _) => match &filter.scope {
                TenantScope::One(tenant) => tenant.clone(),
                TenantScope::All => None,
            },
        }
    }
}

/// A bulk operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bulk {
    pub id: BulkId,
    /// Which jobs it changes, and how.
    pub target: BulkTarget,
    /// Jobs a second.
    pub rate: u32,
    /// When it began, by the store's clock.
    pub started: Timestamp,
    pub ended: Option<Timestamp>,
    pub state: BulkState,
    /// How many jobs it has changed.
    pub changed: u64,
}

impl Bulk {
    /// The target, narrowed as [`BulkAction::narrowed`] does, to jobs that had died, or were created, when it began.
    pub fn wanted(&self) -> BulkTarget {
        let ends = self.started.plus(Duration::from_millis(1));
        match self.target.clone() {
            BulkTarget::Dead(filter) => {
                let before = filter.before.map_or(ends, |before| before.min(ends));
                BulkTarget::Dead(DeadFilter { before: Some(before), ..filter })
            }
            BulkTarget::Jobs(filter, action) => {
                let filter = action.narrowed(*filter);
                BulkTarget::Jobs(Filter { created: filter.created.until(ends), ..filter }.into(), action)
            }
        }
    }
}

/// The result of starting a bulk operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BulkStart {
    /// It runs, started now or by an earlier call with the same token.
    Bulk(Bulk),
    /// [`MAX_BULKS`] run already.
    TooMany,
}

/// Identifies the worker of a bulk operation. Random.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerId(pub [u8; 8]);

/// The result of asking for a bulk operation to work on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TakenBulk {
    /// The caller works on this one now.
    Bulk(Bulk),
    /// All have workers. Contains the time until the first is free, unless its worker keeps it.
    Later(Duration),
    /// None is running.
    Nothing,
}

/// The result of changing some jobs of a bulk operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkStep {
    /// This many of the jobs were still to be changed, and are.
    Jobs(u64),
    /// The bulk operation has ended. Nothing was done.
    Over,
}

#[cfg(test)]
mod tests {
    use super::super::filter::TimeRange;
    use super::*;

    #[test]
    fn an_id_is_read_as_it_is_written() {
        let id = BulkId([0, 1, 2, 3, 4, 5, 0xfe, 0xff]);
        assert_eq!(id.to_string(), "000102030405feff");
        assert_eq!(id.to_string().parse(), Ok(id));
        for text in ["", "0", "000102030405FEFF", "+00102030405feff", "000102030405feff0"] {
            assert_eq!(text.parse::<BulkId>(), Err(InvalidBulkId), "{text}");
        }
    }

    fn bulk(target: BulkTarget) -> Bulk {
        Bulk {
            id: BulkId([0; 8]),
            target,
            rate: 1,
            started: Timestamp::from_millis(1000),
            ended: None,
            state: BulkState::Running,
            changed: 0,
        }
    }

    fn dead(before: Option<u64>) -> DeadFilter {
        let before = before.map(Timestamp::from_millis);
        DeadFilter { topic: "t".parse().unwrap(), reason: None, after: None, before }
    }

    #[test]
    fn jobs_that_died_or_came_after_the_start_are_not_wanted() {
        let ends = |target| match bulk(target).wanted() {
            BulkTarget::Dead(filter) => filter.before.map(Timestamp::as_millis),
            BulkTarget::Jobs(filter, _) => filter.created.before().map(Timestamp::as_millis),
        };
        let jobs = |before: Option<u64>| {
            let created = TimeRange::new(None, before.map(Timestamp::from_millis));
            BulkTarget::Jobs(Filter { created, ..Filter::default() }.into(), BulkAction::Cancel)
        };
        for (given, wanted) in [(None, 1001), (Some(900), 900), (Some(5000), 1001)] {
            assert_eq!(ends(BulkTarget::Dead(dead(given))), Some(wanted));
            assert_eq!(ends(jobs(given)), Some(wanted));
        }
    }
}
