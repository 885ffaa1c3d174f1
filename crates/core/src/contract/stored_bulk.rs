//! The stored form of a bulk operation's target and rate, which is the same in both stores.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::bulk::{BulkAction, BulkTarget, BulkVerb};
use super::dead::DeadFilter;
use super::error::StoreError;
use super::filter::{Filter, StoredFilter};
use crate::clock::{Timestamp, millis_up};
use crate::job::{Due, Topic};

/// Target and rate of a bulk operation as both backends store them, packed with postcard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BulkWork {
    target: StoredTarget,
    /// Jobs a second.
    pub rate: u32,
}

/// Which jobs it changes. Times are in ms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum StoredTarget {
    Dead {
        topic: String,
        reason: Option<String>,
        after: Option<u64>,
        before: Option<u64>,
    },
    /// [`StoredJobs`] as JSON.
    Jobs(String),
}

/// A filter of jobs and what to do to them.
#[derive(Serialize, Deserialize)]
struct StoredJobs {
    action: BulkVerb,
    /// Of a reschedule: how long after the change the jobs are due, in ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delay: Option<u64>,
    /// Of a reschedule: when they are due, in ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<u64>,
    filter: StoredFilter,
}

const UNREADABLE: StoreError = StoreError::Unreadable("a bulk operation");

impl StoredJobs {
    fn new(filter: &Filter, action: BulkAction) -> Self {
        let (delay, at) = match action {
            BulkAction::Reschedule(Due::In(delay)) => (Some(millis_up(delay)), None),
            BulkAction::Reschedule(Due::At(at)) => (None, Some(at.as_millis())),
            BulkAction::Cancel | BulkAction::Run | BulkAction::Revive | BulkAction::Purge => (None, None),
        };
        Self { action: action.into(), delay, at, filter: filter.into() }
    }

    fn target(self) -> Result<BulkTarget, StoreError> {
        let action = match (self.action, self.delay, self.at) {
            (BulkVerb::Cancel, None, None) => BulkAction::Cancel,
            (BulkVerb::Run, None, None) => BulkAction::Run,
            (BulkVerb::Revive, None, None) => BulkAction::Revive,
            (BulkVerb::Purge, None, None) => BulkAction::Purge,
            (BulkVerb::Reschedule, Some(delay), None) => {
                BulkAction::Reschedule(Due::In(Duration::from_millis(delay)))
            }
            (BulkVerb::Reschedule, None, Some(at)) => {
                BulkAction::Reschedule(Due::At(Timestamp::from_millis(at)))
            }
            _ => return Err(UNREADABLE),
        };
        Ok(BulkTarget::Jobs(self.filter.filter()?.into(), action))
    }
}

impl BulkWork {
    /// The stored form of a target and a rate.
    pub fn new(target: &BulkTarget, rate: u32) -> Self {
        let target = match target {
            BulkTarget::Dead(filter) => StoredTarget::Dead {
                topic: filter.topic.as_str().to_owned(),
                reason: filter.reason.clone(),
                after: filter.after.map(Timestamp::as_millis),
                before: filter.before.map(Timestamp::as_millis),
            },
            BulkTarget::Jobs(filter, action) => {
                let stored = serde_json::to_string(&StoredJobs::new(filter, *action));
                StoredTarget::Jobs(stored.expect("texts and numbers always serialise"))
            }
        };
        Self { target, rate }
    }

    /// The target.
    ///
    /// # Errors
    /// [`StoreError::Unreadable`] if it is damaged.
    pub fn target(self) -> Result<BulkTarget, StoreError> {
        match self.target {
            StoredTarget::Dead { topic, reason, after, before } => Ok(BulkTarget::Dead(DeadFilter {
                topic: Topic::from_stored(&topic).ok_or(UNREADABLE)?,
                reason,
                after: after.map(Timestamp::from_millis),
                before: before.map(Timestamp::from_millis),
            })),
            StoredTarget::Jobs(stored) => {
                serde_json::from_str::<StoredJobs>(&stored).map_err(|_| UNREADABLE)?.target()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::filter::tests::full;
    use super::*;

    #[test]
    fn a_target_is_read_back_as_it_was_stored() {
        let before = Some(Timestamp::from_millis(5));
        let dead = DeadFilter { topic: "t".parse().unwrap(), reason: None, after: None, before };
        let (delay, at) = (Due::In(Duration::from_secs(5)), Due::At(Timestamp::from_millis(7)));
        let actions = [BulkAction::Cancel, BulkAction::Run, BulkAction::Revive, BulkAction::Purge]
            .into_iter()
            .chain([BulkAction::Reschedule(delay), BulkAction::Reschedule(at)]);
        let jobs = actions.map(|action| BulkTarget::Jobs(full().into(), action));
        for target in jobs.chain([BulkTarget::Dead(dead)]) {
            let work = BulkWork::new(&target, 7);
            assert_eq!((work.rate, work.target().unwrap()), (7, target));
        }
        for stored in ["", "gone", r#"{"action":"cancel","at":5,"filter":{}}"#] {
            let work = BulkWork { target: StoredTarget::Jobs(stored.to_owned()), rate: 1 };
            assert!(work.target().is_err(), "{stored:?}");
        }
    }
}
